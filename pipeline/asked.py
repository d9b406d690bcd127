"""The samples a dataset holds already, so that nothing is asked twice across units."""

from __future__ import annotations

from pipeline.dataset import open_root
from transforms.commit import DatasetWriter

_asked: dict[str, set[str]] = {}


def asked_before(writer: DatasetWriter) -> set[str]:
    """Ids of the samples committed to the writer's dataset; read once per process, then shared.

    The caller adds what it asks, so that later lots of this process know.
    """
    if writer.uri not in _asked:
        dataset = open_root(writer.uri, writer.s3_endpoint)
        ids = dataset.table("annotations", ["sample_id"])["sample_id"]
        _asked[writer.uri] = set(ids.to_pylist())
    return _asked[writer.uri]


def forget_asked() -> None:
    """Start afresh: the next call of `asked_before` reads the dataset again."""
    _asked.clear()
