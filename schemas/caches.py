"""How often an engine's caches of images helped, as the engine itself counts it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CacheCounts:
    """Counts over a stretch of time; None where the engine does not tell, which is not 0.

    Attributes:
        processor_queries: images that were wanted of the cache of processed images.
        processor_hits: of these, found there: not cut into patches and hashed again.
        encoder_queries: images that prompts showed the model; `n` answers are `n` prompts.
        encoder_runs: images that the vision encoder computed. The rest came out of its cache, or
            was covered by the prefix cache.
    """

    processor_queries: int | None = None
    processor_hits: int | None = None
    encoder_queries: int | None = None
    encoder_runs: int | None = None

    def __add__(self, other: CacheCounts) -> CacheCounts:
        """Both stretches together; unknown where one is."""
        return self._each(other, lambda mine, others: mine + others)

    def __sub__(self, other: CacheCounts) -> CacheCounts:
        """What this has beyond an earlier count; unknown where one is."""
        return self._each(other, lambda mine, others: mine - others)

    @property
    def processor_share(self) -> float | None:
        """Images found processed, of those wanted, 0..1; None where it is not known."""
        return _share(self.processor_hits, self.processor_queries)

    @property
    def encoder_share(self) -> float | None:
        """Images the encoder did not compute, of those shown, 0..1; None where it is not known.

        An image that was pushed out of the cache under a preempted prompt is computed twice.
        """
        if self.encoder_runs is None or self.encoder_queries is None:
            return None
        return _share(max(0, self.encoder_queries - self.encoder_runs), self.encoder_queries)

    def _each(self, other: CacheCounts, join: Callable[[int, int], int]) -> CacheCounts:
        def joined(mine: int | None, others: int | None) -> int | None:
            return None if mine is None or others is None else join(mine, others)

        return CacheCounts(
            joined(self.processor_queries, other.processor_queries),
            joined(self.processor_hits, other.processor_hits),
            joined(self.encoder_queries, other.encoder_queries),
            joined(self.encoder_runs, other.encoder_runs),
        )


def _share(part: int | None, whole: int | None) -> float | None:
    return part / whole if part is not None and whole else None
