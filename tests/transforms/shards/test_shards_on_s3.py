"""Shards on a real S3-compatible server: the same screens as from a local disk."""

import gzip
import io
import unicodedata
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from s3_server import S3Server
from shard_fixtures import png, sidecar, tar_bytes

from schemas.codes import RejectReason
from schemas.errors import InputError
from schemas.records import Reject, ShardKind
from transforms.shards import (
    RawScreen,
    index_shard,
    list_shards,
    member_of_row,
    read_member,
    read_unit,
    split_units,
)

pytestmark = pytest.mark.s3

IMAGES = [png(16 + i, 12, (i, 0, 0)) for i in range(5)]
NFC = "Captura 1+1 año#2 (ñ).png"
NFD = unicodedata.normalize("NFD", NFC)


def parquet() -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table({"image": IMAGES}), buffer, row_group_size=2)
    return buffer.getvalue()


@pytest.fixture
def bucket(s3: S3Server) -> S3Server:
    files = [(f"{i}.png", data) for i, data in enumerate(IMAGES)]
    objects = {
        "tars/a.tar": tar_bytes([*files, ("0.json", sidecar("Ñandú"))]),
        "tars/b [1].tgz": gzip.compress(tar_bytes(files)),
        "tablas/x.parquet": parquet(),
        f"img/{NFC}": IMAGES[0],
        f"img/{NFD}": IMAGES[1],
        "img/[2024] 100%/a&b.png": IMAGES[2],
        "img/[2024] 100%/a&b.json": sidecar("Buscar"),
    }
    s3.put("pantallas", objects)
    return s3


def read_all(pattern: str, endpoint: str) -> list[RawScreen | Reject]:
    return [
        item
        for shard in list_shards([pattern], endpoint)
        for unit in split_units(shard, index_shard(shard, endpoint), 2)
        for item in read_unit(unit, endpoint)
    ]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("tars/", ["tars/a.tar", "tars/b [1].tgz"]),
        ("tars", ["tars/a.tar", "tars/b [1].tgz"]),
        ("tars/*.tar", ["tars/a.tar"]),
        ("tars/b [1].tgz", ["tars/b [1].tgz"]),
        ("**/*.parquet", ["tablas/x.parquet"]),
        ("img", ["img/"]),
        ("img/[2024] 100%/", ["img/[2024] 100%/"]),
        ("t*/", ["tablas/x.parquet", "tars/a.tar", "tars/b [1].tgz"]),
    ],
)
def test_what_a_pattern_means(bucket: S3Server, pattern: str, expected: list[str]) -> None:
    shards = list_shards([f"s3://pantallas/{pattern}"], bucket.endpoint)
    assert [shard.uri.removeprefix("s3://pantallas/") for shard in shards] == expected
    assert all(shard.version or shard.kind is ShardKind.FOLDER for shard in shards)


@pytest.mark.parametrize("name", ["tars/a.tar", "tars/b [1].tgz", "tablas/x.parquet"])
def test_the_images_are_the_ones_that_were_put(bucket: S3Server, name: str) -> None:
    screens = read_all(f"s3://pantallas/{name}", bucket.endpoint)
    assert [s.data for s in screens if isinstance(s, RawScreen)] == IMAGES


def test_weird_keys_are_read_back_by_the_same_key(bucket: S3Server) -> None:
    screens = read_all("s3://pantallas/img/", bucket.endpoint)
    found = {s.member.name: s.data for s in screens if isinstance(s, RawScreen)}
    assert found == {NFC: IMAGES[0], NFD: IMAGES[1], "[2024] 100%/a&b.png": IMAGES[2]}
    (shard,) = list_shards(["s3://pantallas/img"], bucket.endpoint)
    row = member_of_row(NFD, None, len(IMAGES[1]), None)
    assert read_member(shard, row, bucket.endpoint) == IMAGES[1]


def test_a_shard_replaced_by_one_of_the_same_size_is_noticed(bucket: S3Server) -> None:
    bucket.put("pantallas", {"cambia/c.tar": tar_bytes([("a.png", IMAGES[0])])})
    (shard,) = list_shards(["s3://pantallas/cambia/c.tar"], bucket.endpoint)
    (unit,) = split_units(shard, index_shard(shard, bucket.endpoint), 64)
    bucket.put("pantallas", {"cambia/c.tar": tar_bytes([("b.png", IMAGES[0])])})
    (reject,) = read_unit(unit, bucket.endpoint)
    assert isinstance(reject, Reject)
    assert (reject.member, reject.reason) == ("a.png", RejectReason.SHARD_CHANGED)


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("s3://pantallas/tasr/*.tar", "s3://pantallas/tars/"),
        ("s3://pantallas/tars/aa.tar", "s3://pantallas/tars/a.tar"),
        ("s3://no-hay-tal-cubo/*.tar", "no-hay-tal-cubo"),
    ],
)
def test_nothing_found_says_what_is_near(bucket: S3Server, pattern: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        list_shards([pattern], bucket.endpoint)
    assert pattern in str(caught.value)
    assert said in str(caught.value)


def test_a_local_and_a_remote_shard_can_be_listed_together(
    bucket: S3Server, tmp_path: Path
) -> None:
    (tmp_path / "z.tar").write_bytes(tar_bytes([("a.png", IMAGES[0])]))
    patterns = ["s3://pantallas/tars/a.tar", str(tmp_path)]
    shards = list_shards(patterns, bucket.endpoint)
    assert [shard.uri for shard in shards] == [f"{tmp_path}/z.tar", "s3://pantallas/tars/a.tar"]


RAW = [
    "Captura 1+1 año#2 (ñ).png",
    unicodedata.normalize("NFD", "Captura 1+1 año#2 (ñ).png"),
    "[2024] 100%/%20 a&b=c?.png",
    "una*dos;tres@.png",
]


def test_b128_members_keep_their_raw_keys_and_nfd_is_another_one(s3: S3Server) -> None:
    pictures = {key: png(16 + i, 12) for i, key in enumerate(RAW)}
    s3.put("b128", {f"capturas/{key}": data for key, data in pictures.items()} | {"capturas/": b""})
    (shard,) = list_shards(["s3://b128/capturas/"], s3.endpoint)
    units = split_units(shard, index_shard(shard, s3.endpoint), 2)
    found = {}
    for unit in units:
        for item in read_unit(unit, s3.endpoint):
            assert isinstance(item, RawScreen)
            found[item.member.name] = item.data
    assert found == pictures


def test_signs_of_a_pattern_are_literal_where_they_exist_and_can_be_escaped(s3: S3Server) -> None:
    tar = tar_bytes([("a.png", png())])
    names = ["[2024] a.tar", "2 a.tar", "a*b.tar", "axb.tar", "a?b.tar"]
    s3.put("signos", {f"t/{name}": tar for name in names})

    def matched(pattern: str) -> list[str]:
        shards = list_shards([f"s3://signos/t/{pattern}"], s3.endpoint)
        return [shard.uri.removeprefix("s3://signos/t/") for shard in shards]

    assert matched("[2024] a.tar") == ["[2024] a.tar"]
    assert matched("a*b.tar") == ["a*b.tar"]
    assert matched("[[]2024] *.tar") == ["[2024] a.tar"]
    assert matched("[0-9] a.tar") == ["2 a.tar"]
    assert matched("a[*]?.tar") == ["a*b.tar"]
    assert matched("a[?]*.tar") == ["a?b.tar"]
