"""What a reviewer is asked about one sample, in the frame at rest: original upright pixels."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.codes import QueryKind, SampleStatus
from schemas.geometry import Size
from schemas.records import Item


@dataclass(frozen=True, slots=True)
class ReviewSample:
    """One sample as it goes to Label Studio.

    The route is left out on purpose: an audited sample must look like any other.

    Attributes:
        sample_id: key of the task on the server.
        screen_id: SHA-256 of the original image bytes; also names the uploaded picture.
        instruction: what was asked for, NFC.
        status: what became of the model's answer.
        items: the consensus answer, original upright pixels; empty unless `status` is ok.
        candidates: what the k answers located, one `Item` each, in order; may be empty.
        size: original upright image size in pixels.
        probability: estimated probability of being right, 0..1.
        model: checkpoint and revision, as text.
        app: application shown, or None.
        locale: locale of the screen, or None.
    """

    sample_id: str
    screen_id: str
    kind: QueryKind
    instruction: str
    status: SampleStatus
    items: tuple[Item, ...]
    candidates: tuple[Item, ...]
    size: Size
    probability: float
    model: str
    app: str | None = None
    locale: str | None = None
