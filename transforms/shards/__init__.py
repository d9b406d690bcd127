"""Shards of screenshots: what there is, cut into units, and the bytes of each unit."""

from transforms.shards.base import RawScreen, ShardIndex
from transforms.shards.index import index_shard
from transforms.shards.kept import INDEX, IndexStore
from transforms.shards.listing import list_shards
from transforms.shards.read import member_of_row, read_member, read_sidecar, read_unit
from transforms.shards.stored import Taken
from transforms.shards.take import take_member
from transforms.shards.units import make_lots, split_units

__all__ = [
    "INDEX",
    "IndexStore",
    "RawScreen",
    "ShardIndex",
    "Taken",
    "index_shard",
    "list_shards",
    "make_lots",
    "member_of_row",
    "read_member",
    "read_sidecar",
    "read_unit",
    "split_units",
    "take_member",
]
