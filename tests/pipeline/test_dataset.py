import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from stored_fixtures import Ask, Stored, make_stored, png_bytes, sample_id

from pipeline.dataset import open_dataset
from schemas.errors import DatasetError
from schemas.geometry import Box, Point
from schemas.ids import sha256_hex
from schemas.tables import SCHEMA_VERSION, TABLES
from transforms.storage import ObjectMissingError

SCREENS = (
    Stored("uno", (Ask("Guardar", point=(10.0, 20.0), boxes=((5.0, 6.0, 30.0, 40.0),)),)),
    Stored("dos", (Ask("Abrir", route="accept", probability=0.9), Ask("Cerrar")), (200, 100)),
    Stored("tres", colour=(9, 9, 9)),
)


def test_tables_hold_the_committed_rows_under_the_frozen_schema(tmp_path: Path) -> None:
    dataset = make_stored(tmp_path, SCREENS)
    assert dataset.table("annotations").schema == TABLES["annotations"]
    assert dataset.table("annotations")["instruction"].to_pylist() == ["Guardar", "Abrir", "Cerrar"]
    assert dataset.table("screens", ["member"])["member"].to_pylist() == [
        "uno.png",
        "dos.png",
        "tres.png",
    ]
    assert [record.unit_index for record in dataset.commits()] == [0, 1]


def test_tables_without_rows_still_carry_their_schema(tmp_path: Path) -> None:
    dataset = make_stored(tmp_path, ())
    for name, schema in TABLES.items():
        assert dataset.table(name).schema == schema
        assert dataset.table(name).num_rows == 0
    assert dataset.describe().units == 0


def test_a_part_without_a_commit_record_is_not_data(tmp_path: Path) -> None:
    dataset = make_stored(tmp_path, SCREENS)
    last = dataset.commits()[-1]
    (tmp_path / "dataset/_commits" / f"{last.unit_id}.json").unlink()
    members = open_dataset(dataset.uri).table("screens")["member"].to_pylist()
    assert members == ["uno.png", "dos.png"]


def test_the_description_adds_up_the_units(tmp_path: Path) -> None:
    about = make_stored(tmp_path, SCREENS).describe()
    assert (about.units, about.counts.screens, about.counts.samples) == (2, 3, 3)
    assert about.counts.routes == {"accept": 1, "review": 2}
    assert json.loads(about.ingredients) == {"model": {"checkpoint": "prueba"}}
    assert about.shards == (f"{tmp_path}/capturas.tar",)


def test_a_sample_is_found_by_a_unique_beginning_of_its_id(tmp_path: Path) -> None:
    dataset = make_stored(tmp_path, SCREENS)
    whole = sample_id("uno", 0)
    found = dataset.sample(whole[:8])
    assert (found.sample_id, found.instruction) == (whole, "Guardar")
    assert found.items[0].point == Point(10.0, 20.0)
    assert found.items[0].box == Box(5.0, 6.0, 30.0, 40.0)
    assert [answer.text for answer in found.answers] == ["[]"]


def test_a_beginning_that_fits_none_or_several_is_refused(tmp_path: Path) -> None:
    dataset = make_stored(tmp_path, SCREENS)
    with pytest.raises(DatasetError, match="no sample whose id begins with `zz`"):
        dataset.sample("zz")
    with pytest.raises(DatasetError, match="`` fits 3 samples"):
        dataset.sample("")


def test_the_original_bytes_come_back_and_their_picture(tmp_path: Path) -> None:
    dataset = make_stored(tmp_path, SCREENS)
    data = png_bytes((320, 240), (9, 9, 9))
    assert dataset.image_bytes(sha256_hex(data)) == data
    picture = dataset.picture(dataset.screen(sha256_hex(data)[:10]))
    assert (picture.size, picture.getpixel((0, 0))) == ((320, 240), (9, 9, 9))


def test_a_shard_that_changed_since_is_noticed_by_its_hash(tmp_path: Path) -> None:
    dataset = make_stored(tmp_path, SCREENS)
    shard = tmp_path / "capturas.tar"
    data = bytearray(shard.read_bytes())
    data[512 + 60] ^= 0xFF  # inside the first picture
    shard.write_bytes(data)
    with pytest.raises(DatasetError, match=r"uno\.png has changed since it was annotated"):
        dataset.image_bytes(next(dataset.screens()).screen_id)


def test_a_folder_that_is_no_dataset_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"not a Pantalla dataset .*pantalla run"):
        open_dataset(str(tmp_path))
    with pytest.raises(DatasetError, match="not a Pantalla dataset"):
        open_dataset(str(tmp_path / "no-existe"))


def part_of(dataset_folder: Path, table: str) -> Path:
    return min((dataset_folder / table).glob("*.parquet"))


def test_a_missing_part_is_named(tmp_path: Path) -> None:
    dataset = make_stored(tmp_path, SCREENS)
    part = part_of(tmp_path / "dataset", "screens")
    part.unlink()
    with pytest.raises(DatasetError, match=f"{part.name}: a committed part is missing") as caught:
        dataset.table("screens")
    assert isinstance(caught.value.__cause__, ObjectMissingError)


@pytest.mark.parametrize("cut", [0, 8, 200])
def test_a_damaged_part_is_named(tmp_path: Path, cut: int) -> None:
    dataset = make_stored(tmp_path, SCREENS)
    part = part_of(tmp_path / "dataset", "screens")
    part.write_bytes(part.read_bytes()[:cut])
    with pytest.raises(DatasetError, match=f"{part.name}: a committed part is damaged"):
        dataset.table("screens")


def test_a_part_with_other_rows_than_committed_is_refused(tmp_path: Path) -> None:
    dataset = make_stored(tmp_path, SCREENS, unit_screens=3)
    part = part_of(tmp_path / "dataset", "screens")
    pq.write_table(pq.read_table(part).slice(1), part)
    with pytest.raises(DatasetError, match="has 2 rows, committed were 3"):
        dataset.table("screens")


def test_another_schema_version_is_refused_with_advice(tmp_path: Path) -> None:
    dataset = make_stored(tmp_path, SCREENS)
    record = next((tmp_path / "dataset/_commits").iterdir())
    record.write_text(record.read_text().replace(f'"{SCHEMA_VERSION}"', '"2.0.0"'))
    with pytest.raises(DatasetError, match=r"written under schema 2\.0\.0.*into a new dataset"):
        open_dataset(dataset.uri).commits()


def test_a_field_that_an_older_minor_version_lacks_reads_as_null(tmp_path: Path) -> None:
    dataset = make_stored(tmp_path, SCREENS)
    for part in (tmp_path / "dataset/screens").glob("*.parquet"):
        pq.write_table(pq.read_table(part).drop_columns(["app_version"]), part)
    assert dataset.table("screens")["app_version"].to_pylist() == [None, None, None]


def test_parts_of_another_project_are_refused(tmp_path: Path) -> None:
    dataset = make_stored(tmp_path, SCREENS)
    part = part_of(tmp_path / "dataset", "screens")
    pq.write_table(pa.table({"x": [1, 2]}), part)
    with pytest.raises(DatasetError, match="it is not a Pantalla part"):
        dataset.table("screens")


def test_a_record_that_is_not_one_is_refused(tmp_path: Path) -> None:
    dataset = make_stored(tmp_path, SCREENS)
    (tmp_path / "dataset/_commits/otro.json").write_text('{"unit_id": 3}')
    with pytest.raises(DatasetError, match=r"otro\.json: not a commit record"):
        open_dataset(dataset.uri).commits()


def test_two_fingerprints_in_one_dataset_are_refused(tmp_path: Path) -> None:
    dataset = make_stored(tmp_path, SCREENS)
    record = next((tmp_path / "dataset/_commits").iterdir())
    fingerprint = json.loads(record.read_text())["fingerprint"]
    record.write_text(record.read_text().replace(fingerprint, "f" * 64))
    with pytest.raises(DatasetError, match="2 different settings"):
        open_dataset(dataset.uri).table("screens")


def test_unknown_tables_and_columns_are_named(tmp_path: Path) -> None:
    dataset = make_stored(tmp_path, ())
    with pytest.raises(DatasetError, match="no table `screen`; there are: annotations, screens"):
        dataset.table("screen")
    with pytest.raises(DatasetError, match="table `screens` has no column colour"):
        dataset.table("screens", ["colour"])
