"""A disk that is full, read-only or closed to us: a clean stop that the same command resumes."""

import errno
import io
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest
from job_fixtures import job, oracle, scripted, shots, write_shard

from pipeline.cli.errors import exit_code
from pipeline.dataset import open_root
from pipeline.run import run_job
from pipeline.verify import verify_dataset
from schemas.errors import DatasetError, PantallaError, StorageError
from transforms.storage import PassingError, local
from transforms.storage.local import LocalStorage

KNOWN = shots(6)
WRITE = local._write_temp


def failing(number: int, begins: Callable[[Path], bool]) -> Callable[[Path, BinaryIO], Path]:
    """Writes as before until `begins`, and fails with this error from then on."""
    broken: list[bool] = []

    def write(target: Path, source: BinaryIO) -> Path:
        if broken or begins(target):
            broken.append(True)
            raise OSError(number, "injected")
        return WRITE(target, source)

    return write


def second_record() -> Callable[[Path], bool]:
    seen: list[Path] = []

    def begins(target: Path) -> bool:
        if target.parent.name == "_commits":
            seen.append(target)
        return len(seen) == 2

    return begins


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.ENOSPC, "No space left|injected"),
        (errno.EROFS, "injected"),
        (errno.EACCES, "injected"),
        (errno.EIO, "injected"),
    ],
)
def test_trouble_in_the_middle_keeps_what_is_committed_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, said: str
) -> None:
    config = job(tmp_path, write_shard(tmp_path / "a.tar", KNOWN))
    monkeypatch.setattr(local, "_write_temp", failing(number, second_record()))
    with pytest.raises(StorageError, match=said) as caught:
        run_job(config, engine_factory=scripted(oracle(KNOWN)))
    assert exit_code(caught.value) == 4
    assert config.output.dataset in str(caught.value)
    monkeypatch.undo()
    assert len(open_root(config.output.dataset).commits()) == 1
    outcome = run_job(config, engine_factory=scripted(oracle(KNOWN)))
    assert (outcome.exit_code, outcome.report.figures.stats.units_reused) == (0, 1)
    verdict = verify_dataset(open_root(config.output.dataset))
    assert (verdict.whole, verdict.leftovers) == (True, 0)
    assert not list(Path(config.output.dataset).rglob(".tmp-*"))


@pytest.mark.parametrize(
    ("number", "kind", "code"),
    [
        (errno.ENOSPC, PassingError, 4),
        (errno.EROFS, DatasetError, 2),
        (errno.EACCES, DatasetError, 2),
    ],
)
def test_trouble_at_the_start_is_said_before_any_engine(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    kind: type[PantallaError],
    code: int,
) -> None:
    def forbidden() -> None:
        raise AssertionError("an engine was started for nothing")

    config = job(tmp_path, write_shard(tmp_path / "a.tar", KNOWN))
    monkeypatch.setattr(local, "_write_temp", failing(number, lambda _: True))
    with pytest.raises(kind) as caught:
        run_job(config, engine_factory=forbidden)
    assert exit_code(caught.value) == code


def test_a_file_system_without_hard_links_is_written_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(errno.EPERM, "no hard links here")

    monkeypatch.setattr("os.link", refused)
    storage, uri = LocalStorage(), str(tmp_path / "x" / "y.json")
    assert storage.create(uri, b"uno")
    assert not storage.create(uri, b"dos")
    assert storage.read(uri) == b"uno"
    assert [path.name for path in (tmp_path / "x").iterdir()] == ["y.json"]
    config = job(tmp_path, write_shard(tmp_path / "a.tar", KNOWN))
    assert run_job(config, engine_factory=scripted(oracle(KNOWN))).exit_code == 0


def test_a_half_written_file_is_removed(tmp_path: Path) -> None:
    class Full(io.BytesIO):
        def read(self, *_: int | None) -> bytes:
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        WRITE(tmp_path / "x.parquet", Full(b"abc"))
    assert list(tmp_path.iterdir()) == []
