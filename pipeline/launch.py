"""Start the graph on a Beam runner, and give back our own errors as they were raised."""

from __future__ import annotations

from collections.abc import Sequence

import apache_beam as beam

from pipeline.beam_options import beam_options
from pipeline.graph import build
from pipeline.settings import WorkerSettings
from schemas.errors import PantallaError
from schemas.records import Lot


def launch(lots: Sequence[Lot], settings: WorkerSettings, arguments: Sequence[str]) -> None:
    """Run the graph over `lots` and wait for its end.

    Raises:
        PantallaError: the error of ours that ended it, whatever the runner wrapped around it.
    """
    root = beam.Pipeline(options=beam_options(arguments))
    build(root, lots, settings)
    try:
        root.run().wait_until_finish()
    except Exception as error:
        ours = _own_error(error)
        if ours is None:
            raise
        raise ours from error


def _own_error(error: BaseException | None) -> PantallaError | None:
    """The innermost error of ours in a chain of causes: the runner wraps it in copies."""
    ours = None
    while error is not None:
        if isinstance(error, PantallaError):
            ours = error
        hidden = error.__suppress_context__  # an error raised `from None` tells the whole story
        error = error.__cause__ or (None if hidden else error.__context__)
    return ours
