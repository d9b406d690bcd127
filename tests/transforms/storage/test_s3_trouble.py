"""S3 operations through trouble that passes, and trouble that does not (hard inputs, group 6)."""

import io
import os
import sys
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path

import pytest
from boto3.session import Session

from schemas.errors import ConfigError, StorageError
from transforms.storage import (
    ObjectDeniedError,
    ObjectMissingError,
    S3Access,
    Storage,
    s3_connection,
    storage_for,
)

sys.path.insert(0, str(Path(__file__).parent))
from faulty_proxy import Fault, FaultyProxy, Request, faulty_proxy, times
from s3_server import ACCESS_KEY, SECRET_KEY, S3Server

pytestmark = pytest.mark.s3

KEY = "s3://apuros/a b+ñ#1.bin"
DATA = bytes(range(256)) * 40

OPERATIONS: dict[str, Callable[[Storage], object]] = {
    "read": lambda s: s.read(KEY),
    "read_range": lambda s: s.read_range(KEY, 10, 20),
    "open": lambda s: s.open(KEY).read(),
    "stat": lambda s: s.stat(KEY),
    "exists": lambda s: s.exists(KEY),
    "is_folder": lambda s: s.is_folder("s3://apuros/muchas"),
    "children": lambda s: s.children("s3://apuros/muchas"),
    "list": lambda s: list(s.list("s3://apuros/muchas")),
    "write_atomic": lambda s: s.write_atomic("s3://apuros/w", DATA),
    "write_empty": lambda s: s.write_atomic("s3://apuros/vacio", b""),
    "create": lambda s: s.create("s3://apuros/nuevo", DATA),
    "create_from": lambda s: s.create_from("s3://apuros/nuevo", io.BytesIO(DATA)),
    "delete": lambda s: s.delete("s3://apuros/w"),
}
FAULTS = {
    "B124 SlowDown": Fault(503, "SlowDown"),
    "500": Fault(500, "InternalError"),
    "RequestTimeout": Fault(400, "RequestTimeout"),
    "reset": Fault(0),
    "B132 OperationAborted": Fault(409, "OperationAborted"),
    "409 conditional": Fault(409, "ConditionalRequestConflict"),
}


@pytest.fixture(scope="module")
def server(s3: S3Server) -> S3Server:
    s3.put("apuros", {"a b+ñ#1.bin": DATA, **{f"muchas/{n:04d}": b"x" for n in range(1003)}})
    return s3


@pytest.fixture(scope="module")
def running(server: S3Server) -> Iterator[FaultyProxy]:
    with faulty_proxy(server.port) as found:
        yield found


@pytest.fixture
def proxy(running: FaultyProxy, monkeypatch: pytest.MonkeyPatch) -> FaultyProxy:
    monkeypatch.setattr(s3_connection, "_FIRST_WAIT", 0.01)
    running.rule = lambda _: None
    storage_for(KEY, running.endpoint).exists(KEY)
    running.requests.clear()
    return running


@pytest.fixture
def storage(proxy: FaultyProxy) -> Iterator[Storage]:
    found = storage_for(KEY, proxy.endpoint)
    yield found
    proxy.rule = lambda _: None
    found.delete("s3://apuros/nuevo")


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_each_operation_outlives_trouble_that_passes(
    name: str, fault: Fault, proxy: FaultyProxy, storage: Storage
) -> None:
    expected = OPERATIONS[name](storage)
    storage.delete("s3://apuros/nuevo")
    proxy.requests.clear()
    # A HEAD has no body: its error is the bare status.
    bare = fault.code == "RequestTimeout"
    proxy.rule = times(2, fault, lambda request: not (bare and request.method == "HEAD"))
    assert OPERATIONS[name](storage) == expected
    assert bare or len(proxy.requests) >= 3


def test_a_write_whose_answer_was_lost_counts_as_ours(proxy: FaultyProxy, storage: Storage) -> None:
    proxy.rule = times(1, Fault(0, pass_on=True), lambda request: request.method == "PUT")
    assert storage.create("s3://apuros/nuevo", b"nuestro") is True
    proxy.rule = times(1, Fault(409, "ConditionalRequestConflict"))
    assert storage.create("s3://apuros/nuevo", b"otro") is False
    assert storage.read("s3://apuros/nuevo") == b"nuestro"


def test_trouble_that_stays_ends_after_a_bounded_number_of_tries(
    proxy: FaultyProxy, storage: Storage
) -> None:
    proxy.rule = lambda _: Fault(503, "SlowDown")
    with pytest.raises(StorageError, match=r"a b\+ñ#1.*SlowDown.*given up after 10 attempts"):
        storage.read(KEY)
    assert len([r for r in proxy.requests if r.method == "GET"]) == s3_connection.ATTEMPTS


def test_waits_grow_are_drawn_at_random_and_are_bounded() -> None:
    spans = [[s3_connection.backoff_seconds(n) for _ in range(200)] for n in (1, 4, 30)]
    assert all(len(set(span)) > 100 for span in spans)
    assert max(spans[0]) <= 0.2 < max(spans[1]) <= 1.6 < max(spans[2]) <= 20


def test_b129_expired_credentials_are_read_again_from_the_chain(
    proxy: FaultyProxy, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job goes on with what the environment holds by then; HEAD hides the reason."""

    def rule(request: Request) -> Fault | None:
        old = "vieja" in request.headers.get("Authorization", "")
        if not old:
            return None
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
        return Fault(400, "ExpiredToken")

    for name in ("stat", "list", "create"):
        s3_connection.connection.cache_clear()
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "vieja")
        proxy.rule = rule
        assert OPERATIONS[name](storage)


def test_credentials_rotated_in_the_shared_file_are_found(
    server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real server refuses the key that is gone; the file has the new one by then."""
    file = tmp_path / "credentials"
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    file.write_text("[default]\naws_access_key_id = ida\naws_secret_access_key = x\n")
    s3_connection.connection.cache_clear()
    found = storage_for(KEY, server.endpoint)

    def renew(_: int) -> float:
        file.write_text(
            f"[default]\naws_access_key_id = {ACCESS_KEY}\naws_secret_access_key = {SECRET_KEY}\n"
        )
        return 0

    monkeypatch.setattr(s3_connection, "backoff_seconds", renew)
    assert found.read(KEY) == DATA
    s3_connection.connection.cache_clear()


def test_wrong_credentials_stop_after_a_few_tries(
    server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3_connection.connection.cache_clear()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nadie")
    with pytest.raises(StorageError, match=r"InvalidAccessKeyId.*after \d attempts") as caught:
        storage_for(KEY, server.endpoint).stat(KEY)
    assert SECRET_KEY not in str(caught.value)
    s3_connection.connection.cache_clear()


def test_no_credentials_at_all_say_where_they_are_looked_for(
    server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3_connection.connection.cache_clear()
    monkeypatch.setattr(Session, "get_credentials", lambda _: None)
    monkeypatch.setattr("botocore.session.Session.get_credentials", lambda _: None)
    with pytest.raises(StorageError, match=r"AWS_ACCESS_KEY_ID.*AWS_PROFILE"):
        storage_for(KEY, server.endpoint).read(KEY)
    s3_connection.connection.cache_clear()


def test_b125_an_endpoint_that_is_not_there_is_named_after_a_few_tries(server: S3Server) -> None:
    with pytest.raises(StorageError, match=r"at http://127\.0\.0\.1:9: .*after \d attempts"):
        storage_for(KEY, "http://127.0.0.1:9").read(KEY)


def test_an_endpoint_that_is_no_address_is_a_wrong_setting(server: S3Server) -> None:
    with pytest.raises(ConfigError, match="s3_endpoint = mi servidor"):
        storage_for(KEY, "mi servidor").read(KEY)


def test_a_clock_that_is_wrong_is_said_with_how_much(
    proxy: FaultyProxy, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_connection, "ATTEMPTS", 2)
    date = {"Date": formatdate(time.time() + 3600, usegmt=True)}
    proxy.rule = lambda _: Fault(403, "RequestTimeTooSkewed", date)
    with pytest.raises(StorageError, match=r"3[56]\d\d s behind the server's"):
        storage.read(KEY)


def test_a_request_that_grew_old_on_its_way_is_signed_again(
    proxy: FaultyProxy, storage: Storage
) -> None:
    proxy.rule = times(1, Fault(403, "RequestTimeTooSkewed"))
    assert storage.read(KEY) == DATA


def test_an_empty_answer_is_never_an_empty_folder(proxy: FaultyProxy, storage: Storage) -> None:
    proxy.rule = times(1, Fault(200, headers={"Content-Type": "application/xml"}))
    assert len(list(storage.list("s3://apuros/muchas"))) == 1003


def test_denied_and_missing_are_told_apart_also_by_head(
    proxy: FaultyProxy, storage: Storage
) -> None:
    proxy.rule = lambda _: Fault(403, "AccessDenied")
    with pytest.raises(ObjectDeniedError, match="AccessDenied"):
        storage.stat(KEY)
    proxy.rule = lambda _: None
    with pytest.raises(ObjectMissingError):
        storage.stat("s3://apuros/nada")


def test_requester_pays_is_said_on_every_request_and_only_when_asked_for(
    proxy: FaultyProxy, storage: Storage
) -> None:
    paying = storage_for(KEY, S3Access(proxy.endpoint, requester_pays=True))
    for wanted, who in ((True, paying), (False, storage)):
        proxy.requests.clear()
        for name in ("read", "read_range", "stat", "list", "write_atomic"):
            OPERATIONS[name](who)
        said = {request.headers.get("x-amz-request-payer") for request in proxy.requests}
        assert said == {"requester" if wanted else None}


def test_pages_are_followed_and_each_is_tried_again(proxy: FaultyProxy, storage: Storage) -> None:
    proxy.rule = times(1, Fault(503, "SlowDown"), lambda r: "continuation-token" in r.path)
    assert len(list(storage.list("s3://apuros/muchas"))) == 1003
    pages = [r for r in proxy.requests if "list-type=2" in r.path]
    assert len(pages) == 3


def test_a_store_without_conditional_writes_is_written_all_the_same(
    proxy: FaultyProxy, storage: Storage
) -> None:
    def rule(request: Request) -> Fault | None:
        return Fault(501, "NotImplemented") if "If-None-Match" in request.headers else None

    proxy.rule = rule
    assert storage.create("s3://apuros/nuevo", b"uno") is True
    assert storage.create("s3://apuros/nuevo", b"dos") is False
    assert storage.read("s3://apuros/nuevo") == b"uno"


def test_b122_b123_files_of_any_size_are_one_plain_put(
    proxy: FaultyProxy, storage: Storage
) -> None:
    """No multipart upload: nothing is left half done, and no store minds the sizes of parts."""
    for size in (0, 30 * 2**20):
        proxy.requests.clear()
        data = os.urandom(size)
        assert storage.create_from("s3://apuros/nuevo", io.BytesIO(data)) is True
        assert [request.method for request in proxy.requests] == ["PUT"]
        assert storage.read("s3://apuros/nuevo") == data
        storage.delete("s3://apuros/nuevo")


def test_a_body_damaged_on_its_way_is_sent_again(proxy: FaultyProxy, storage: Storage) -> None:
    proxy.rule = times(1, Fault(400, "BadDigest"), lambda request: request.method == "PUT")
    storage.write_atomic("s3://apuros/w", DATA)
    assert all("Content-MD5" in r.headers for r in proxy.requests if r.method == "PUT")


def test_a_folder_mark_is_no_member(server: S3Server) -> None:
    server.put("apuros", {"marca/": b"", "marca/a.png": b"x", "marca/sub/": b""})
    found = storage_for(KEY, server.endpoint).list("s3://apuros/marca/")
    assert [file.uri for file in found] == ["s3://apuros/marca/a.png"]


def test_a_bucket_in_another_region_is_asked_there(proxy: FaultyProxy, storage: Storage) -> None:
    moved = {"x-amz-bucket-region": "eu-south-2"}

    def rule(request: Request) -> Fault | None:
        here = "/us-east-1/" in request.headers.get("Authorization", "")
        return Fault(301, "PermanentRedirect", moved) if here else None

    proxy.rule = rule
    for name in ("stat", "read", "list"):
        s3_connection.connection.cache_clear()
        assert OPERATIONS[name](storage)
    s3_connection.connection.cache_clear()
