"""What k answers to one query say together: the consensus and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.codes import SampleStatus
from schemas.records import Item, Parsed


@dataclass(frozen=True, slots=True)
class Signals:
    """What the k samples of one query say about certainty, each in 0..1.

    Attributes:
        agreement: share of all k samples that voted for the winning region (absence and unusable
            answers count as votes of their own).
        dispersion: 0 = all in one region, 1 = scattered.
        regions: number of separate regions the points fall in.
        usable: samples that gave a location or said absent; `total` is k.
    """

    agreement: float
    dispersion: float
    regions: int
    usable: int
    total: int


@dataclass(frozen=True, slots=True)
class Scored:
    """The consensus of one sample's completions, with its probability of being right.

    Attributes:
        candidates: every completion, read, in order; `items` is the consensus.
        probability_source: which score gave `probability`, and whether it is calibrated.
    """

    status: SampleStatus
    items: tuple[Item, ...]
    flags: tuple[str, ...]
    candidates: tuple[Parsed, ...]
    signals: Signals
    probability: float
    probability_source: str
