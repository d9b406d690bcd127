"""S3 storage against a real server."""

import io
import pickle
import sys
import threading
import unicodedata
from pathlib import Path

import pytest

from schemas.errors import StorageError
from transforms.storage import (
    ObjectChangedError,
    ObjectMissingError,
    Storage,
    s3_connection,
    storage_for,
)
from transforms.storage.s3_reader import RESUMES, Body, RangeReader

sys.path.insert(0, str(Path(__file__).parent))
from cutting_proxy import cutting_proxy
from s3_server import S3Server

pytestmark = pytest.mark.s3

WEIRD = [
    "Captura 1+1 año#2 (ñ).png",
    unicodedata.normalize("NFD", "Captura 1+1 año#2 (ñ).png"),
    "[2024] pantallas/100%/a&b=c?.png",
    "es/%20/ñ.png",
]


@pytest.fixture
def storage(s3: S3Server) -> Storage:
    s3.put("datos", {})
    return storage_for("s3://datos/", s3.endpoint)


@pytest.mark.parametrize("key", WEIRD)
def test_a_key_is_taken_as_it_is(storage: Storage, key: str) -> None:
    uri = f"s3://datos/raros/{key}"
    storage.write_atomic(uri, key.encode())
    assert storage.read(uri) == key.encode()
    assert storage.stat(uri).size == len(key.encode())
    assert storage.exists(uri)
    assert uri in [file.uri for file in storage.list("s3://datos/raros")]


def test_nfc_and_nfd_keys_are_two_objects(storage: Storage) -> None:
    for key, data in ((WEIRD[0], b"nfc"), (WEIRD[1], b"nfd")):
        storage.write_atomic(f"s3://datos/{key}", data)
    assert storage.read(f"s3://datos/{WEIRD[0]}") == b"nfc"
    assert storage.read(f"s3://datos/{WEIRD[1]}") == b"nfd"


def test_list_is_sorted_complete_and_recursive(s3: S3Server, storage: Storage) -> None:
    keys = [f"lista/{i % 7}/{i:04d}" for i in range(1005)] + ["lista/3.txt", "lista2/no"]
    s3.put("datos", dict.fromkeys(keys, b""))
    found = [file.uri for file in storage.list("s3://datos/lista")]
    assert found == sorted(f"s3://datos/{key}" for key in keys if key != "lista2/no")
    assert list(storage.list("s3://datos/nada/")) == []


def test_folders_are_prefixes(s3: S3Server, storage: Storage) -> None:
    s3.put("datos", {"f/a/b.png": b"1", "f/c.png": b"2"})
    assert storage.is_folder("s3://datos/f")
    assert not storage.is_folder("s3://datos/f/c.png")
    assert not storage.exists("s3://datos/f")
    assert storage.children("s3://datos/f") == ["s3://datos/f/a/", "s3://datos/f/c.png"]


def test_ranges_and_seeking(storage: Storage) -> None:
    data = bytes(range(256)) * 1000
    storage.write_atomic("s3://datos/r", data)
    assert storage.read_range("s3://datos/r", 1000, 20) == data[1000:1020]
    assert storage.read_range("s3://datos/r", len(data) - 3, 10) == data[-3:]
    assert storage.read_range("s3://datos/r", len(data) + 5, 10) == b""
    with storage.open("s3://datos/r", read_ahead=4096) as file:
        file.seek(-10, 2)
        assert file.read() == data[-10:]
        file.seek(70_000)
        assert file.read(10_000) == data[70_000:80_000]


def test_empty_object(storage: Storage) -> None:
    storage.write_atomic("s3://datos/vacio", b"")
    assert storage.read("s3://datos/vacio") == b""


def test_create_has_one_winner(storage: Storage) -> None:
    uri, wins = "s3://datos/reclamo.json", []
    threads = [
        threading.Thread(target=lambda n=n: wins.append(storage.create(uri, b"%d" % n)))
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(wins) == [False] * 7 + [True]
    assert storage.create(uri, b"tarde") is False
    storage.delete(uri)
    storage.delete(uri)
    assert storage.create(uri, b"otra vez") is True


def test_missing_objects_and_buckets_are_named(storage: Storage) -> None:
    for uri in ("s3://datos/no/hay.tar", "s3://no-existe/x.tar"):
        with pytest.raises(ObjectMissingError, match=uri):
            storage.read(uri)
    with pytest.raises(ObjectMissingError, match="NoSuchBucket"):
        list(storage.list("s3://no-existe/x/"))


def test_a_changed_object_is_noticed(storage: Storage) -> None:
    uri = "s3://datos/cambia"
    storage.write_atomic(uri, b"uno" * 1000)
    version = storage.stat(uri).version
    storage.write_atomic(uri, b"dos" * 1000)
    with pytest.raises(ObjectChangedError, match=uri):
        storage.open(uri, version)
    with pytest.raises(ObjectChangedError, match=uri):
        storage.read_range(uri, 0, 10, version)


def test_an_object_replaced_while_it_is_read_is_never_mixed(storage: Storage) -> None:
    uri = "s3://datos/mezcla"
    storage.write_atomic(uri, b"a" * 100_000)
    with storage.open(uri, read_ahead=1000) as file:
        assert file.read(10) == b"a" * 10
        storage.write_atomic(uri, b"b" * 100_000)
        with pytest.raises(ObjectChangedError):
            file.read()


def test_storage_survives_pickling(storage: Storage) -> None:
    storage.write_atomic("s3://datos/p", b"p")
    assert pickle.loads(pickle.dumps(storage)).read("s3://datos/p") == b"p"


def test_a_cut_connection_is_resumed(s3: S3Server, storage: Storage) -> None:
    data = b"".join(b"%08d" % i for i in range(200_000))
    storage.write_atomic("s3://datos/largo", data)
    with cutting_proxy(s3.port) as proxy:
        through = storage_for("s3://datos/", proxy.endpoint)
        with through.open("s3://datos/largo") as file:
            proxy.cut_after = 400_000
            assert file.read() == data
        assert proxy.cuts >= 3


def test_a_body_that_stalls_is_resumed(
    s3: S3Server, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_connection, "_READ_TIMEOUT", 1)
    data = b"".join(b"%08d" % i for i in range(100_000))
    storage.write_atomic("s3://datos/lento", data)
    with cutting_proxy(s3.port) as proxy:
        through = storage_for("s3://datos/", proxy.endpoint)
        proxy.stalls, proxy.cut_after = True, 450_000
        assert through.read("s3://datos/lento") == data
        assert proxy.cuts >= 1


def test_a_server_that_is_not_there_is_named_without_secrets(
    monkeypatch: pytest.MonkeyPatch, s3: S3Server
) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    nowhere = storage_for("s3://datos/", "http://127.0.0.1:1")
    with pytest.raises(StorageError, match=r"s3://datos/x.*http://127\.0\.0\.1:1") as caught:
        nowhere.read("s3://datos/x")
    assert "pantalla-test" not in str(caught.value)


def test_reading_stops_after_a_bounded_number_of_idle_attempts() -> None:
    class Dead:
        def read(self, _: int) -> bytes:
            raise OSError("cut")

        def close(self) -> None: ...

    asked = []

    def fetch(first: int, last: int, version: str) -> Body:
        asked.append((first, last))
        return Body(Dead(), 10)

    with pytest.raises(StorageError, match="s3://b/k"):
        RangeReader(fetch, "s3://b/k", 10, "").read(10)
    assert asked == [(0, 9)] * RESUMES


def test_a_whole_object_is_one_request() -> None:
    asked = []

    def fetch(first: int, last: int, version: str) -> Body:
        asked.append((first, last))
        return Body(io.BytesIO(bytes(last - first + 1)), last - first + 1)

    reader = io.BufferedReader(RangeReader(fetch, "s3://b/k", 10**6, ""), 2**16)
    assert reader.read() == bytes(10**6)
    assert asked == [(0, 10**6 - 1)]


def test_an_answer_cut_in_its_headers_is_not_taken_for_an_empty_one() -> None:
    answers = [Body(io.BytesIO(b""), None), Body(io.BytesIO(b"hola"), 4)]
    assert RangeReader(lambda *_: answers.pop(0), "s3://b/k", 4, "").read(4) == b"hola"
