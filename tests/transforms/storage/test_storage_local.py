"""Local storage and URIs."""

import pickle
import threading
from pathlib import Path

import pytest

from schemas.errors import ConfigError
from transforms.storage import (
    ObjectDeniedError,
    ObjectMissingError,
    join_uri,
    normalize_uri,
    parent_uri,
    storage_for,
)

LOCAL = storage_for("/")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("/a/b/../c.tar", "/a/c.tar"),
        ("/a/b/", "/a/b/"),
        ("/", "/"),
        ("file:///a/mi%20carpeta/%C3%B1.tar", "/a/mi carpeta/ñ.tar"),
        ("file://localhost/a", "/a"),
        ("s3://cubo/a b/100%25+ñ#.png", "s3://cubo/a b/100%25+ñ#.png"),
    ],
)
def test_uris_have_one_spelling(given: str, expected: str) -> None:
    assert normalize_uri(given) == expected


def test_relative_paths_become_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert normalize_uri("datos/x.tar") == f"{tmp_path}/datos/x.tar"
    assert normalize_uri("datos/") == f"{tmp_path}/datos/"


def test_other_schemes_are_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="gs://"):
        storage_for("gs://cubo/x.tar")


def test_join_and_parent() -> None:
    assert join_uri("s3://b/p/", "a/b", "c.parquet") == "s3://b/p/a/b/c.parquet"
    assert join_uri("/x") == "/x"
    assert parent_uri("/x/y.tar") == "/x/"
    assert parent_uri("s3://b/p/q/") == "s3://b/p/"


def test_write_read_range_and_delete(tmp_path: Path) -> None:
    uri = f"{tmp_path}/nueva carpeta/año#1.bin"
    LOCAL.write_atomic(uri, b"uno")
    LOCAL.write_atomic(uri, b"0123456789")
    assert LOCAL.read(uri) == b"0123456789"
    assert LOCAL.read_range(uri, 3, 4) == b"3456"
    assert LOCAL.read_range(uri, 8, 10) == b"89"
    found = LOCAL.stat(uri)
    assert (found.uri, found.size) == (uri, 10)
    assert found.modified == Path(uri).stat().st_mtime_ns
    LOCAL.delete(uri)
    LOCAL.delete(uri)
    assert not LOCAL.exists(uri)
    assert list(tmp_path.rglob("*.*")) == []


def test_create_has_one_winner(tmp_path: Path) -> None:
    uri, wins = f"{tmp_path}/c.json", []
    threads = [
        threading.Thread(target=lambda n=n: wins.append(LOCAL.create(uri, b"%d" % n)))
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(wins) == [False] * 7 + [True]
    assert len(LOCAL.read(uri)) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["c.json"]


def test_list_is_sorted_recursive_and_leaves_out_unfinished_files(tmp_path: Path) -> None:
    for name in ("b.txt", "a/c/d.txt", "a.txt", "a/.tmp-1-abc", ".oculto"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x")
    (tmp_path / "vuelta").symlink_to(tmp_path)
    (tmp_path / "roto").symlink_to(tmp_path / "nada")
    found = [file.uri.removeprefix(f"{tmp_path}/") for file in LOCAL.list(str(tmp_path))]
    assert found == [".oculto", "a.txt", "a/c/d.txt", "b.txt"]
    assert list(LOCAL.list(f"{tmp_path}/no existe")) == []


def test_missing_and_forbidden_files_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ObjectMissingError, match="nada"):
        LOCAL.read(f"{tmp_path}/nada")
    with pytest.raises(ObjectMissingError):
        LOCAL.stat(str(tmp_path))

    def forbid(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", forbid)
    with pytest.raises(ObjectDeniedError, match="secreto"):
        LOCAL.read(f"{tmp_path}/secreto")


def test_storage_survives_pickling(tmp_path: Path) -> None:
    LOCAL.write_atomic(f"{tmp_path}/p", b"p")
    assert pickle.loads(pickle.dumps(LOCAL)).read(f"{tmp_path}/p") == b"p"
