"""Reviews into the dataset, from a fake server with people in it; ids are of the hard inputs."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from fake_reviews import ReviewState, fake_reviews
from fake_studio import TOKEN
from s3_server import S3Server
from stored_fixtures import Ask, Stored, commit_stored, make_stored, plan_units, sample_id

import label_studio.pull as reading
from label_studio.interface import VERDICT
from label_studio.tasks import prediction
from pipeline.cli.app import main
from pipeline.config import LabelStudioConfig
from pipeline.dataset import Dataset, open_dataset
from pipeline.fingerprint import fingerprint_of
from pipeline.pull import PullReport, pull_dataset
from pipeline.pull_lock import only_puller
from pipeline.push import push_dataset
from pipeline.review_samples import samples_to_review
from schemas.errors import DatasetError, LabelStudioError, StorageError
from schemas.tables import REVIEWS
from transforms.commit import DatasetWriter
from transforms.storage.local import LocalStorage

SCREENS = (
    Stored(
        "uno",
        (
            Ask("Abrir el menú", point=(30, 40), boxes=((10, 20, 50, 60),)),
            Ask("Buscar", point=(10, 10)),
        ),
    ),
    Stored("dos", (Ask("Salir", status="absent"),), colour=(10, 20, 30)),
)
MENU, SEARCH, EXIT = sample_id("uno", 0), sample_id("uno", 1), sample_id("dos", 0)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[tuple[str, ReviewState]]:
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", TOKEN)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with fake_reviews() as running:
        yield running


@pytest.fixture
def reviewed(
    server: tuple[str, ReviewState], tmp_path: Path
) -> tuple[Dataset, LabelStudioConfig, ReviewState]:
    """A dataset that was pushed, its server, and nobody has answered yet."""
    url, state = server
    dataset = make_stored(tmp_path, SCREENS)
    settings = LabelStudioConfig(url=url)
    assert push_dataset(dataset, settings).pending == 0
    return dataset, settings, state


Reviewed = tuple[Dataset, LabelStudioConfig, ReviewState]


def choice(code: str) -> dict[str, Any]:
    return {"from_name": VERDICT, "type": "choices", "value": {"choices": [code]}}


def untouched(dataset: Dataset, key: str) -> list[dict[str, Any]]:
    """The model's regions as a browser sends them back."""
    (sample,) = (s for s in samples_to_review(dataset) if s.sample_id == key)
    return [{**region, "origin": "prediction"} for region in prediction(sample).result]


def counts(report: PullReport) -> tuple[int, int, int, int, int]:
    assert report.balanced
    return (report.new, report.edited, report.deleted, report.known, report.strangers)


def files(dataset: Dataset) -> dict[str, bytes]:
    root = Path(dataset.uri)
    return {
        str(path.relative_to(root)): path.read_bytes()
        for folder in ("reviews", "_reviews")
        for path in sorted((root / folder).rglob("*"))
        if path.is_file() and path.name != "lock"
    }


def test_a_review_becomes_a_row_with_all_that_is_known_of_it(reviewed: Reviewed) -> None:
    dataset, settings, state = reviewed
    entry = state.annotate(MENU, [choice("correct"), *untouched(dataset, MENU)], reviewer=4)
    assert counts(pull_dataset(dataset, settings)) == (1, 0, 0, 0, 0)
    table = dataset.reviews()
    assert table.schema == REVIEWS
    (row,) = table.to_pylist()
    assert (row["sample_id"], row["verdict"], row["skipped"], row["deleted"]) == (
        MENU,
        "correct",
        False,
        False,
    )
    assert [row[name] for name in ("x", "y", "x1", "y1", "x2", "y2")] == [30, 40, 10, 20, 50, 60]
    assert (row["frame"], row["image_width"], row["image_height"]) == ("original_px", 320, 240)
    assert (row["reviewer"], row["lead_time_s"], row["role"]) == ("4", 12.5, "button")
    assert (row["origin"], row["point_origin"], row["flags"]) == ("prediction", "prediction", [])
    assert (row["annotation_id"], row["unique_id"]) == (entry["id"], entry["unique_id"])
    assert (row["server"], row["project_id"], row["server_version"]) == (
        settings.url,
        1,
        "1.23.2",
    )
    assert row["task_id"] == state.task(MENU)["id"]
    assert row["created_at"].isoformat() == entry["created_at"].replace(".000000Z", "+00:00")
    assert json.loads(row["result"]) == entry["result"]
    assert all(len(row[name]) == 12 for name in ("interface_version", "guide_version"))


def test_pulling_again_changes_no_byte(reviewed: Reviewed) -> None:
    dataset, settings, state = reviewed
    state.annotate(MENU, [choice("correct"), *untouched(dataset, MENU)])
    state.annotate(SEARCH, [], skipped=True)
    pull_dataset(dataset, settings)
    before = files(dataset)
    for full in (False, True):
        assert counts(pull_dataset(dataset, settings, full=full)) == (0, 0, 0, 2, 0)
        assert files(dataset) == before


def test_an_edit_is_a_new_version_and_a_deletion_a_row_that_says_so(reviewed: Reviewed) -> None:
    dataset, settings, state = reviewed
    kept = state.annotate(MENU, [choice("correct"), *untouched(dataset, MENU)])
    gone = state.annotate(EXIT, [choice("correct")])
    pull_dataset(dataset, settings)
    state.edit(kept, [choice("absent")])
    state.delete(gone)
    assert counts(pull_dataset(dataset, settings)) == (0, 1, 1, 0, 0)
    assert counts(pull_dataset(dataset, settings)) == (0, 0, 0, 1, 0)
    rows = dataset.reviews().to_pylist()
    assert [(row["verdict"], row["deleted"]) for row in rows] == [
        ("correct", False),
        ("correct", False),
        ("absent", False),
        ("none", True),
    ]
    deleted = rows[-1]
    assert (deleted["sample_id"], deleted["unique_id"]) == (EXIT, gone["unique_id"])
    assert deleted["updated_at"].isoformat() == state.task(EXIT)["updated_at"].replace(
        ".000000Z", "+00:00"
    )
    latest = dataset.reviews(latest=True)
    assert latest["unique_id"].to_pylist() == [kept["unique_id"]]
    assert latest["verdict"].to_pylist() == ["absent"]


def test_the_latest_view_of_the_readme_says_the_same(reviewed: Reviewed) -> None:
    dataset, settings, state = reviewed
    first = state.annotate(MENU, [choice("correct"), *untouched(dataset, MENU)])
    second = state.annotate(SEARCH, [choice("illegible")])
    third = state.annotate(EXIT, [], skipped=True)
    pull_dataset(dataset, settings)
    state.edit(first, [choice("ambiguous")])
    state.delete(second)
    pull_dataset(dataset, settings)
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    (line,) = (part for part in readme.splitlines() if part.startswith("select * from (from "))
    view = line.replace("anotaciones/", f"{dataset.uri}/")
    ids = duckdb.sql(f"select review_id from ({view}) order by review_id").fetchall()
    latest = dataset.reviews(latest=True)
    assert [row[0] for row in ids] == sorted(latest["review_id"].to_pylist())
    assert set(latest["unique_id"].to_pylist()) == {first["unique_id"], third["unique_id"]}


def test_an_id_that_sqlite_gives_again_is_another_review(reviewed: Reviewed) -> None:
    dataset, settings, state = reviewed
    state.reuse_ids = True
    first = state.annotate(MENU, [choice("illegible")])
    pull_dataset(dataset, settings)
    state.delete(first)
    second = state.annotate(SEARCH, [choice("ambiguous")])
    assert second["id"] == first["id"]
    assert counts(pull_dataset(dataset, settings)) == (1, 0, 1, 0, 0)
    assert dataset.reviews(latest=True)["sample_id"].to_pylist() == [SEARCH]


def test_two_people_on_one_task_are_two_reviews(reviewed: Reviewed) -> None:
    dataset, settings, state = reviewed
    state.annotate(MENU, [choice("correct"), *untouched(dataset, MENU)], reviewer=1)
    pull_dataset(dataset, settings)
    state.annotate(MENU, [choice("absent")], reviewer=2)
    assert counts(pull_dataset(dataset, settings)) == (1, 0, 0, 1, 0)
    assert dataset.reviews(latest=True)["reviewer"].to_pylist() == ["1", "2"]


def test_b110_skipped_reviews_are_kept_apart(reviewed: Reviewed) -> None:
    dataset, settings, state = reviewed
    state.annotate(MENU, [choice("correct"), *untouched(dataset, MENU)], skipped=True)
    report = pull_dataset(dataset, settings)
    assert (report.new, report.skipped, dict(+report.verdicts)) == (1, 1, {})
    (row,) = dataset.reviews().to_pylist()
    assert (row["skipped"], row["verdict"], row["x"], row["boxes"]) == (True, "none", None, [])


def test_b109_a_task_reviewed_as_empty_comes_back_with_its_size(reviewed: Reviewed) -> None:
    dataset, settings, state = reviewed
    state.annotate(MENU, [])
    pull_dataset(dataset, settings)
    (row,) = dataset.reviews().to_pylist()
    assert (row["verdict"], row["image_width"], row["flags"]) == ("absent", 320, ["empty_result"])


@pytest.mark.parametrize("tasks", [100, 101, 250])
def test_b106_b107_every_page_is_read_and_the_last_one_ends_it(
    server: tuple[str, ReviewState], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tasks: int
) -> None:
    monkeypatch.setattr(reading, "PAGE", 100)
    monkeypatch.setattr(reading, "EXPORT_BATCH", 40)
    url, state = server
    asks = tuple(Ask(f"Abrir {n}", point=(n, n)) for n in range(tasks))
    dataset = make_stored(tmp_path, (Stored("uno", asks),))
    settings = LabelStudioConfig(url=url)
    push_dataset(dataset, settings)
    for number in range(tasks):
        state.annotate(sample_id("uno", number), [choice("absent")])
    state.requests.clear()
    assert counts(pull_dataset(dataset, settings)) == (tasks, 0, 0, 0, 0)
    assert dataset.reviews().num_rows == tasks
    assert state.count("GET /api/tasks/") == 1 + -(-tasks // 100)


def test_reviews_of_samples_that_come_later_are_found_later(
    reviewed: Reviewed, tmp_path: Path
) -> None:
    dataset, settings, state = reviewed
    late = Stored("tres", (Ask("Imprimir", point=(5, 5)),), colour=(70, 70, 70))
    folder = tmp_path / "mas"
    folder.mkdir()
    other = make_stored(folder, (late,))
    push_dataset(other, settings)
    state.annotate(sample_id("tres", 0), [choice("absent")])
    assert counts(pull_dataset(dataset, settings)) == (0, 0, 0, 0, 1)
    assert dataset.reviews().num_rows == 0
    for _ in range(3):
        state.annotate(MENU, [choice("absent")])
    pull_dataset(dataset, settings)
    writer = DatasetWriter(dataset.uri, fingerprint_of({"model": {"checkpoint": "prueba"}}))
    (unit,) = plan_units(folder / "capturas.tar", 2)
    commit_stored(writer, unit, {"tres.png": late})
    grown = open_dataset(dataset.uri)
    assert counts(pull_dataset(grown, settings)) == (1, 0, 0, 3, 0)


def test_a_pull_killed_before_its_record_is_as_if_it_had_not_been(
    reviewed: Reviewed, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, settings, state = reviewed
    state.annotate(MENU, [choice("correct"), *untouched(dataset, MENU)])
    write = LocalStorage.write_atomic

    def killed(self: LocalStorage, uri: str, data: bytes) -> None:
        if "/_reviews/pull-" in uri:
            raise StorageError("killed")
        write(self, uri, data)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStorage, "write_atomic", killed)
        with pytest.raises(StorageError, match="killed"):
            pull_dataset(dataset, settings)
    assert len(list(Path(dataset.uri, "reviews").iterdir())) == 1
    assert dataset.reviews().num_rows == 0
    state.annotate(SEARCH, [choice("illegible")])
    assert counts(pull_dataset(dataset, settings)) == (2, 0, 0, 0, 0)
    parts = list(Path(dataset.uri, "reviews").iterdir())
    assert len(parts) == 1, "a plain glob must not find a review twice"
    assert pq.read_table(parts[0]).num_rows == 2


def test_a_pull_killed_before_its_watermark_doubles_nothing(
    reviewed: Reviewed, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, settings, state = reviewed
    state.annotate(MENU, [choice("illegible")])
    write = LocalStorage.write_atomic

    def killed(self: LocalStorage, uri: str, data: bytes) -> None:
        if "/_reviews/state-" in uri:
            raise StorageError("killed")
        write(self, uri, data)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStorage, "write_atomic", killed)
        with pytest.raises(StorageError, match="killed"):
            pull_dataset(dataset, settings)
    assert counts(pull_dataset(dataset, settings)) == (0, 0, 0, 1, 0)
    assert dataset.reviews().num_rows == 1


def test_an_unreadable_state_is_only_a_longer_way(reviewed: Reviewed) -> None:
    dataset, settings, state = reviewed
    state.annotate(MENU, [choice("illegible")])
    pull_dataset(dataset, settings)
    (path,) = Path(dataset.uri, "_reviews").glob("state-*.json")
    path.write_text("{")
    report = pull_dataset(dataset, settings)
    assert report.full
    assert counts(report) == (0, 0, 0, 1, 0)


def test_only_what_changed_is_asked_for(reviewed: Reviewed) -> None:
    dataset, settings, state = reviewed
    state.annotate(MENU, [choice("illegible")])
    pull_dataset(dataset, settings)
    state.ticks += 3600
    state.annotate(SEARCH, [choice("illegible")])
    pull_dataset(dataset, settings)
    state.ticks += 3600
    report = pull_dataset(dataset, settings)
    assert (report.tasks, report.annotations, report.full) == (1, 1, False)


def test_a_full_pull_sees_that_a_whole_task_was_deleted(reviewed: Reviewed) -> None:
    dataset, settings, state = reviewed
    state.annotate(MENU, [choice("illegible")])
    pull_dataset(dataset, settings)
    state.tasks.remove(state.task(MENU))
    assert counts(pull_dataset(dataset, settings)) == (0, 0, 0, 0, 0)
    assert counts(pull_dataset(dataset, settings, full=True)) == (0, 0, 1, 0, 0)
    assert dataset.reviews(latest=True).num_rows == 0


def test_an_export_that_leaves_out_what_the_list_has_is_not_a_deletion(reviewed: Reviewed) -> None:
    dataset, settings, state = reviewed
    state.annotate(MENU, [choice("illegible")])
    pull_dataset(dataset, settings)
    state.hide = {state.task(MENU)["id"]}
    with pytest.raises(LabelStudioError, match="nothing was taken for deleted"):
        pull_dataset(dataset, settings)
    assert dataset.reviews(latest=True).num_rows == 1


def test_annotations_that_the_server_does_not_count_are_pulled_and_not_deleted(
    reviewed: Reviewed,
) -> None:
    dataset, settings, state = reviewed
    state.annotate(MENU, [choice("illegible")])
    pull_dataset(dataset, settings)
    state.uncounted = {state.task(MENU)["id"], state.task(SEARCH)["id"]}
    state.annotate(SEARCH, [choice("illegible")])
    assert counts(pull_dataset(dataset, settings)) == (1, 0, 0, 1, 0)


def test_a_server_that_ignores_the_filter_is_not_believed(reviewed: Reviewed) -> None:
    dataset, settings, state = reviewed
    state.annotate(MENU, [choice("illegible")])
    pull_dataset(dataset, settings)
    state.ticks += 3600
    state.annotate(MENU, [choice("illegible")])
    pull_dataset(dataset, settings)
    state.ignore_filters = True
    with pytest.raises(LabelStudioError, match="unasked"):
        pull_dataset(dataset, settings)


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (500, {"detail": "Abrir el menú"}, "the server answered 500"),
        (404, "<html>", "the server answered 404"),
        (401, {"detail": "Invalid token."}, "401"),
    ],
)
def test_a_server_in_trouble_leaves_the_dataset_as_it_was(
    reviewed: Reviewed, status: int, body: object, words: str
) -> None:
    dataset, settings, state = reviewed
    state.annotate(MENU, [choice("illegible")])
    state.fail["GET /api/projects/1/export"] = [(status, body)] * 5
    with pytest.raises(LabelStudioError, match=words) as caught:
        pull_dataset(dataset, settings)
    assert "Abrir" not in str(caught.value)
    assert dataset.reviews().num_rows == 0


def test_b100_b101_what_cannot_be_read_is_written_as_needing_another_look(
    reviewed: Reviewed,
) -> None:
    dataset, settings, state = reviewed
    box = untouched(dataset, MENU)[0]
    state.annotate(MENU, [choice("corrected"), {**box, "value": {**box["value"], "x": None}}])
    state.annotate(SEARCH, [choice("corrected"), {**box, "value": {**box["value"], "x": 2561.4}}])
    report = pull_dataset(dataset, settings)
    assert report.blocked == 2
    rows = dataset.reviews().to_pylist()
    assert [row["x1"] for row in rows] == [None, None]
    assert "not_finite" in rows[0]["flags"]
    assert "outside_image" in rows[1]["flags"]


def test_foreign_regions_are_counted_and_kept(
    reviewed: Reviewed, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset, settings, state = reviewed
    brush = {"type": "brushlabels", "from_name": "pincel", "value": {"rle": [1]}}
    state.annotate(MENU, [choice("correct"), *untouched(dataset, MENU), brush])
    assert command(["pull", dataset.uri, "--url", str(settings.url)]) == 0
    said = capsys.readouterr().out
    assert "New reviews          1\n" in said
    assert "Of new and edited    correct 1\n" in said
    assert "Foreign regions      1 (not of this interface; kept in `result`)\n" in said
    (row,) = dataset.reviews().to_pylist()
    assert (row["foreign_regions"], "pincel" in row["result"]) == (1, True)


def test_a_second_puller_is_sent_away(reviewed: Reviewed) -> None:
    dataset, settings, _ = reviewed
    with (
        only_puller(dataset.storage, f"{dataset.uri}/_reviews"),
        pytest.raises(DatasetError, match="another pull is running"),
    ):
        pull_dataset(dataset, settings)
    assert counts(pull_dataset(dataset, settings)) == (0, 0, 0, 0, 0)


def test_without_a_project_nothing_is_made(server: tuple[str, ReviewState], tmp_path: Path) -> None:
    url, state = server
    dataset = make_stored(tmp_path, SCREENS)
    with pytest.raises(LabelStudioError, match="`pantalla push` makes it"):
        pull_dataset(dataset, LabelStudioConfig(url=url))
    assert state.projects == {}


def test_the_command_reads_the_job_file(
    reviewed: Reviewed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset, settings, state = reviewed
    state.annotate(MENU, [choice("illegible")])
    job = tmp_path / "trabajo.toml"
    job.write_text(
        f"[input]\nshards = ['{tmp_path}/capturas.tar']\n"
        f"[output]\ndataset = '{dataset.uri}'\n[label_studio]\nurl = '{settings.url}'\n",
        encoding="utf-8",
    )
    assert command(["pull", "--config", str(job)]) == 0
    assert capsys.readouterr().out.startswith("New reviews          1\n")


@pytest.mark.s3
def test_a_dataset_on_s3_takes_reviews_too(
    s3: S3Server, server: tuple[str, ReviewState], tmp_path: Path
) -> None:
    url, state = server
    local = make_stored(tmp_path, SCREENS)
    settings = LabelStudioConfig(url=url)
    push_dataset(local, settings)
    stored = {
        f"d/{path.relative_to(local.uri)}": path.read_bytes()
        for path in Path(local.uri).rglob("*")
        if path.is_file()
    }
    s3.put("resenas", stored)
    dataset = open_dataset("s3://resenas/d", s3.endpoint)
    state.annotate(MENU, [choice("illegible")])
    assert counts(pull_dataset(dataset, settings)) == (1, 0, 0, 0, 0)
    assert counts(pull_dataset(dataset, settings)) == (0, 0, 0, 1, 0)
    assert open_dataset(dataset.uri, s3.endpoint).reviews()["sample_id"].to_pylist() == [MENU]
    folder = f"{dataset.uri}/_reviews"
    with only_puller(dataset.storage, folder), pytest.raises(DatasetError, match="runs out in"):
        pull_dataset(dataset, settings)
    stale = b'{"token": "x", "holder": "otra 1", "until": 1.0}'
    dataset.storage.write_atomic(f"{folder}/lock.json", stale)
    assert counts(pull_dataset(dataset, settings)) == (0, 0, 0, 1, 0)
    assert not dataset.storage.exists(f"{folder}/lock.json")


def command(words: list[str]) -> int:
    """Run the command line and return its exit code."""
    try:
        main(words)
    except SystemExit as caught:
        return int(caught.code or 0)
    return 0
