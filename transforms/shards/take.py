"""One member of a shard as it lies there, also one that could not be used."""

from __future__ import annotations

from schemas.errors import InputError, StorageError
from schemas.records import Shard, Unit
from transforms.shards.base import RawScreen
from transforms.shards.index import index_shard
from transforms.shards.listing import list_shards
from transforms.shards.names import readable_name
from transforms.shards.read import read_unit
from transforms.shards.stored import Taken, stored_under
from transforms.storage import ObjectDeniedError, ObjectMissingError, S3Address, storage_for


def take_member(uri: str, name: str, s3_endpoint: S3Address = None) -> list[Taken]:
    """The bytes stored under `name`: several where the name occurs more than once.

    Args:
        uri: a shard, as tables name it.
        name: a member, as tables name it, or as the shard does.
        s3_endpoint: how to reach S3.

    Raises:
        InputError: if there is no such shard, or it has no bytes under this name.
        StorageError: if a disk or a store is in trouble.
    """
    name = readable_name(name)[0]
    shard = _shard(uri, s3_endpoint)
    index = index_shard(shard, s3_endpoint)
    doubts = [problem.detail for problem in index.problems if problem.member == name]
    members = tuple(member for member in index.members if member.name == name)
    why = f"{name} cannot be taken out: {doubts[0]}" if doubts else f"holds nothing named {name}"
    if members and not doubts:
        (item,) = read_unit(Unit("", shard, 0, members[:1]), s3_endpoint)
        if isinstance(item, RawScreen):
            return [Taken(item.data, item.sidecar)]
        why = f"{name} cannot be taken out: {item.detail}"
    try:
        taken = list(stored_under(shard, name, storage_for(uri, s3_endpoint)))
    except (ObjectDeniedError, ObjectMissingError) as error:
        raise InputError(str(error)) from error
    except OSError as error:
        raise StorageError(f"{uri}: {name} cannot be taken out: {error}") from error
    if not taken:
        raise InputError(f"{uri}: {why}")
    return taken


def _shard(uri: str, s3_endpoint: S3Address) -> Shard:
    for shard in list_shards([uri], s3_endpoint):
        if shard.uri == uri:
            return shard
    raise InputError(f"{uri}: is a folder of shards; name one of them")
