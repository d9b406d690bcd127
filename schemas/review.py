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
        items: the consensus answer, original upright pixels; empty unless `status` is ok, or
            `truncated` with elements that were complete before the cut.
        candidates: places outside the winning region that other answers gave, one `Item` each, in
            order; empty where the k answers agree.
        size: original upright image size in pixels.
        probability: estimated probability of being right, 0..1; not told to reviewers.
        model: checkpoint and revision, as text.
        app: application shown, or None.
        locale: locale of the screen, or None.
        priority: what its review would teach, 0..1, reviewed from high to low; an audited sample
            has the priority of some sample in doubt, so that the order does not give it away.
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
    priority: float = 0.0
