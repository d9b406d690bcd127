"""Files of a tar or a folder, in any order, to members with their sidecars."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from schemas.codes import RejectReason
from schemas.records import ByteRange, Member, Problem
from transforms.shards.base import Entry, ShardIndex
from transforms.shards.names import is_image, is_sidecar, sidecar_keys, suffix

MAX_MEMBER_BYTES = 2**30
"""Files above 1 GiB are refused before they are read: no screenshot is that large."""


def pair_members(entries: Iterable[Entry], problems: Iterable[Problem] = ()) -> ShardIndex:
    """Images joined with their sidecars (`sidecar_keys` has the rule).

    Members keep the order of `entries`. Of two entries with one name the first wins. A sidecar may
    serve several images (`login.png` and `login.jpg`).

    Args:
        entries: every file of the shard that is not to be ignored.
        problems: found before; they come first in the result.
    """
    images: dict[str, Entry] = {}
    sidecars: dict[str, Entry] = {}
    found = list(problems)
    for entry in entries:
        name = entry.span.name
        group = images if is_image(name) else sidecars
        refusal = _refusal(entry.span, group)
        if refusal:
            found.append(Problem(name, *refusal))
        else:
            group[name] = entry
    members, orphans = _join(images, sidecars)
    return ShardIndex(members, (*found, *orphans))


def _refusal(entry: ByteRange, group: dict[str, Entry]) -> tuple[RejectReason, str] | None:
    if not is_image(entry.name) and not is_sidecar(entry.name):
        kind = suffix(entry.name) or "no suffix"
        return RejectReason.MEMBER_UNSUPPORTED, f"neither an image nor a JSON sidecar ({kind})"
    if entry.name in group:
        first = group[entry.name].span
        sizes = f"{first.size} bytes, then {entry.size} bytes"
        return RejectReason.MEMBER_DUPLICATE, f"name occurs twice ({sizes}); the first is used"
    if entry.size > MAX_MEMBER_BYTES:
        return RejectReason.IMAGE_TOO_LARGE, f"file of {entry.size} bytes, limit {MAX_MEMBER_BYTES}"
    return None


def _join(
    images: dict[str, Entry], sidecars: dict[str, Entry]
) -> tuple[tuple[Member, ...], tuple[Problem, ...]]:
    """Members, and a problem for each sidecar that no image claims.

    Names are compared as they are, then in NFC: a sidecar written on another system may spell the
    accents of the same name differently.
    """
    exact = {name.rpartition(".")[0]: name for name in sidecars}
    composed = {unicodedata.normalize("NFC", key): name for key, name in exact.items()}
    claimed: set[str] = set()
    members = []
    for name, image in images.items():
        keys = sidecar_keys(name)
        normal = [unicodedata.normalize("NFC", key) for key in keys]
        hits = [exact.get(k) or composed.get(n) for k, n in zip(keys, normal, strict=True)]
        hit = next((hit for hit in hits if hit), None)
        claimed |= {hit} if hit else set()
        sidecar = sidecars[hit].span if hit else None
        members.append(Member(name, image.span, sidecar, flags=image.flags))
    orphans = [
        Problem(name, RejectReason.SIDECAR_ORPHAN, "no image of this name")
        for name in sidecars
        if name not in claimed
    ]
    return tuple(members), tuple(orphans)
