"""The gold file of a dataset, where there is one: it can be read, and is about its samples."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.dataset import Dataset
from pipeline.gold import GOLD_FILE
from pipeline.verify.findings import Verdict
from pipeline.verify.geometry import PLACES, bad_geometry
from pipeline.verify.ids import Unique
from pipeline.verify.parts import read_table
from schemas.errors import StorageError
from schemas.geometry import FrameKind
from transforms.storage import join_uri


def check_gold(dataset: Dataset, samples: Unique | None, verdict: Verdict) -> None:
    """Check the gold file against itself and against the samples of the dataset.

    Args:
        dataset: freshly opened.
        samples: ids of all its samples; None where not all of them are known.
        verdict: is added to.
    """
    uri = join_uri(dataset.uri, *GOLD_FILE.split("/"))
    try:
        if not dataset.storage.exists(uri):
            return
        data = dataset.storage.read(uri)
    except StorageError as error:
        verdict.add("gold", uri, str(error))
        return
    table = read_table(data, uri, "gold", verdict)
    if table is not None:
        verdict.rows["gold"] = table.num_rows
        for detail in _problems(table, samples):
            verdict.add("gold", uri, detail)


def _problems(table: pa.Table, samples: Unique | None) -> list[str]:
    ids = table["sample_id"].to_pylist()
    found = []
    if len(set(ids)) < len(ids):
        found.append(f"{len(ids) - len(set(ids))} rows of samples that it holds already")
    strangers = samples.holds(ids).count(False) if samples else 0
    if strangers:
        found.append(f"{strangers} rows of samples that are not in the dataset")
    frames = pc.sum(pc.not_equal(table["frame"], FrameKind.ORIGINAL_PX.value)).as_py() or 0
    if frames:
        found.append(f"{frames} rows in another frame than {FrameKind.ORIGINAL_PX.value}")
    columns = {name: table[name].combine_chunks() for name in PLACES}
    sides = (table[name].to_numpy() for name in ("image_width", "image_height"))
    bad = int(bad_geometry(columns, *sides).sum())
    if bad:
        found.append(f"{bad} rows whose geometry is outside the image, or not in order")
    return found
