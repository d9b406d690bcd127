"""The whole job on one page. Read this first.

    plan        shards -> units -> lots          listed once, before anything runs
    annotate    one lot on one worker:
      read        unit -> screens                rejects: unreadable member, truncated shard, ...
      decode      bytes -> upright RGB           rejects: truncated, too large, unsupported, ...
      compose     screen -> queries -> requests  prompt, seen size, frame
      infer       requests -> answers            offline vLLM, always fed from the next unit
      parse       answer -> geometry             a status per answer: ok, absent, no_answer, ...
      score       k answers -> probability
      route       probability -> accept / review / audit / reject
      commit      rows -> Parquet, then a commit record: the unit now exists
    announce    commit record -> progress

Only lots and commit records cross an edge: an image that does costs 4 to 8 times its bytes. The
graph is linear, with idempotent effects and one output, which is what every Beam runner does right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import apache_beam as beam

from pipeline.annotate import annotate_lot
from pipeline.announce import announce
from pipeline.settings import WorkerSettings
from schemas.commits import CommitRecord
from schemas.records import Lot


class AnnotateLot(beam.DoFn):  # type: ignore[misc] # Beam ships no types
    """One lot in, one commit record per unit out."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._settings = settings

    def process(self, lot: Lot) -> Iterator[CommitRecord]:
        """Annotate and commit every unit of `lot` that is not committed yet."""
        yield from annotate_lot(lot, self._settings)


def build(root: beam.Pipeline, lots: Sequence[Lot], settings: WorkerSettings) -> beam.PCollection:
    """Build the job's graph; the PCollection holds a `CommitRecord` per unit."""
    return (
        root
        | "Lots" >> beam.Create(lots)
        | "Annotate" >> beam.ParDo(AnnotateLot(settings))
        | "Announce" >> beam.Map(announce)
    )
