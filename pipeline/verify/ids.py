"""Ids that must be unique over a whole dataset, held as eight bytes each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from schemas.ids import sha256_hex


class Unique:
    """Collects the keys of all units and tells which are there twice.

    Keys are held as 64 bits of their SHA-256: among 10^8 of them a false alarm has a chance of
    about 3 in 10,000 (birthday bound), and a doubled key is never missed.
    """

    def __init__(self) -> None:
        self._hashes: list[np.ndarray] = []
        self._owners: list[tuple[str, int]] = []

    def add(self, owner: str, keys: Iterable[str]) -> None:
        """The keys of one owner, each once."""
        hashes = _hashes(keys)
        self._hashes.append(hashes)
        self._owners.append((owner, len(hashes)))

    def holds(self, keys: Sequence[str]) -> list[bool]:
        """Of each key, whether any owner has it."""
        known = np.concatenate([np.empty(0, dtype=np.uint64), *self._hashes])
        return [bool(found) for found in np.isin(_hashes(keys), known)]

    def doubled(self) -> list[tuple[int, list[str]]]:
        """For each group of owners that share keys: how many keys, and the owners."""
        if not self._hashes:
            return []
        hashes = np.concatenate(self._hashes)
        owners = np.repeat(np.arange(len(self._owners)), [count for _, count in self._owners])
        order = np.argsort(hashes, kind="stable")
        hashes, owners = hashes[order], owners[order]
        repeats = np.flatnonzero(hashes[1:] == hashes[:-1])
        groups: dict[tuple[int, int], int] = {}
        for at in repeats:
            pair = (int(owners[at]), int(owners[at + 1]))
            groups[pair] = groups.get(pair, 0) + 1
        return [
            (count, sorted({self._owners[first][0], self._owners[second][0]}))
            for (first, second), count in groups.items()
        ]


def _hashes(keys: Iterable[str]) -> np.ndarray:
    return np.array([int(sha256_hex(key.encode())[:16], 16) for key in keys], dtype=np.uint64)
