"""Start the graph on a Beam runner, and give back our own errors as they were raised."""

from __future__ import annotations

import contextlib
import logging
import re
import threading
from collections.abc import Iterator, Sequence

import apache_beam as beam
from apache_beam.runners.runner import PipelineResult

from pipeline.beam_options import beam_options
from pipeline.graph import build
from pipeline.settings import WorkerSettings
from pipeline.stopping import abandon_requested
from schemas import errors
from schemas.errors import PantallaError
from schemas.records import Lot

log = logging.getLogger(__name__)

_GLANCE = 0.5

_TOLD = re.compile(r"^(?:schemas\.errors\.)(\w+): (.+)$", re.MULTILINE)
"""The last line of a Python stack: what a runner whose workers are elsewhere keeps of an error."""


def launch(lots: Sequence[Lot], settings: WorkerSettings, arguments: Sequence[str]) -> None:
    """Run the graph over `lots` and wait for its end.

    Workers elsewhere hear no signal: when the job is asked to stop they go on during the time of
    grace, then the runner is told to cancel. What they have committed stays.

    Raises:
        PantallaError: the error of ours that ended it, whatever the runner wrapped around it.
    """
    root = beam.Pipeline(options=beam_options(arguments))
    build(root, lots, settings)
    try:
        result = root.run()
        with _cancelled_on_stop(result) as cancelled:
            _wait(result, cancelled)
    except Exception as error:
        ours = _own_error(error) or _told_error(str(error))
        if ours is None:
            raise
        raise ours from error


def _wait(result: PipelineResult, cancelled: threading.Event) -> None:
    try:
        result.wait_until_finish()
    except Exception as error:
        if not cancelled.is_set():
            raise
        log.info("the runner ended the job: %s", error)


@contextlib.contextmanager
def _cancelled_on_stop(result: PipelineResult) -> Iterator[threading.Event]:
    """Within the block, cancel `result` once the time of grace is over; the event says that."""
    over, cancelled = threading.Event(), threading.Event()

    def watch() -> None:
        while not over.wait(_GLANCE):
            if abandon_requested():
                cancelled.set()
                result.cancel()
                return

    thread = threading.Thread(target=watch, name="pantalla-cancel", daemon=True)
    thread.start()
    try:
        yield cancelled
    finally:
        over.set()
        client = getattr(result, "client", None)  # Dask's, which would go on calling its scheduler
        if client is not None:
            client.close()


def _own_error(error: BaseException | None) -> PantallaError | None:
    """The innermost error of ours in a chain of causes: the runner wraps it in copies."""
    ours = None
    while error is not None:
        if isinstance(error, PantallaError):
            ours = error
        hidden = error.__suppress_context__  # an error raised `from None` tells the whole story
        error = error.__cause__ or (None if hidden else error.__context__)
    return ours


def _told_error(text: str) -> PantallaError | None:
    """The last error of ours in the stacks that a runner told as text."""
    for name, message in reversed(_TOLD.findall(text)):
        kind = getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, errors.EngineError | errors.StorageError):
            return kind(message)
        if isinstance(kind, type) and issubclass(kind, PantallaError):
            return PantallaError(message)
    return None
