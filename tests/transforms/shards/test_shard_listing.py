"""Patterns to shards."""

import unicodedata
from pathlib import Path

import pytest
from shard_fixtures import png, tar_bytes, write

from schemas.errors import ConfigError, InputError
from schemas.records import ShardKind
from transforms.shards import list_shards

TAR = tar_bytes([("a.png", png())])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("t/b.tar", "t/a.tar", "t/sub/c.tgz", "t/nota.txt", "[2024] x/d.tar", "año/e.tar"):
        write(tmp_path / name, TAR)
    write(tmp_path / "img/es/1.png", png())
    write(tmp_path / "img/2.png", png())
    return tmp_path


def found(root: Path, *patterns: str) -> list[str]:
    shards = list_shards([f"{root}/{pattern}" for pattern in patterns])
    return [shard.uri.removeprefix(f"{root}/") for shard in shards]


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["t/b.tar"], ["t/b.tar"]),
        (["t/"], ["t/a.tar", "t/b.tar"]),
        (["t"], ["t/a.tar", "t/b.tar"]),
        (["t/*.tar"], ["t/a.tar", "t/b.tar"]),
        (["t/**/*.t*"], ["t/a.tar", "t/b.tar", "t/sub/c.tgz"]),
        (["t/*"], ["t/a.tar", "t/b.tar", "t/sub/c.tgz"]),
        (["t/[ab].tar"], ["t/a.tar", "t/b.tar"]),
        (["[2024] x/d.tar"], ["[2024] x/d.tar"]),
        (["[2024] x/*.tar"], ["[2024] x/d.tar"]),
        (["[2024] x"], ["[2024] x/d.tar"]),
        (["img"], ["img/"]),
        (["img/", "img/es"], ["img/"]),
        (["t/b.tar", "t", "t/*.tar"], ["t/a.tar", "t/b.tar"]),
        ([unicodedata.normalize("NFD", "año/e.tar")], ["año/e.tar"]),
        (["*/"], ["[2024] x/d.tar", "año/e.tar", "img/", "t/a.tar", "t/b.tar"]),
    ],
)
def test_what_a_pattern_means(root: Path, patterns: list[str], expected: list[str]) -> None:
    assert found(root, *patterns) == expected


def test_a_folder_of_folders_of_shards_stands_for_them(root: Path) -> None:
    write(root / "hive/locale=es/part-0.parquet", b"PAR1")
    write(root / "hive/_SUCCESS", b"")
    assert found(root, "hive") == ["hive/locale=es/part-0.parquet"]


def test_relative_and_file_urls(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    assert [shard.uri for shard in list_shards(["t/a.tar"])] == [f"{root}/t/a.tar"]
    assert [shard.uri for shard in list_shards([f"file://{root}/t/a.tar"])] == [f"{root}/t/a.tar"]


def test_size_and_kind_are_noted_and_a_name_without_suffix_is_looked_into(root: Path) -> None:
    write(root / "sin_sufijo", TAR)
    (shard,) = list_shards([f"{root}/sin_sufijo"])
    assert (shard.kind, shard.byte_size, shard.version) == (ShardKind.TAR, len(TAR), "")


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("t/bb.tar", "t/b.tar"),
        ("tt/*.tar", "/t/"),
        ("t/*.parquet", "nearest is"),
        ("nada/de/nada/*.tar", "nearest is"),
        ("img/2.png", "a shard is its folder: "),
        ("img/*.png", "a shard is their folder: "),
        ("t/nota.txt.gz", "t/nota.txt"),
    ],
)
def test_a_pattern_that_matches_nothing_says_what_is_near(
    root: Path, pattern: str, said: str
) -> None:
    with pytest.raises(InputError) as caught:
        list_shards([f"{root}/{pattern}"])
    assert pattern in str(caught.value)
    assert said in str(caught.value)


def test_a_text_file_is_no_shard(root: Path) -> None:
    write(root / "nota.txt", b"hola")
    with pytest.raises(InputError, match="neither a tar nor a zip nor a Parquet"):
        list_shards([f"{root}/nota.txt"])


def test_images_beside_shards_are_not_lost_in_silence(root: Path) -> None:
    write(root / "t/suelta.png", png())
    with pytest.raises(InputError, match="both images and shards"):
        list_shards([f"{root}/t"])


def test_an_unknown_scheme_is_refused() -> None:
    with pytest.raises(ConfigError, match="gs://"):
        list_shards(["gs://b/*.tar"])
