"""A zstd file as a seekable stream of its uncompressed bytes.

A zstd file is a run of frames. The library decompresses them but does not say where they begin,
which is where reading can start in the middle; their outline is parsed here (RFC 8878, section 3).
"""

from __future__ import annotations

import io
import json
from bisect import bisect_right
from collections.abc import Iterator
from typing import BinaryIO

import zstandard

_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = b"\x2a\x4d\x18"
_MAX_WINDOW = 2**27
"""Memory that one frame may ask for: 128 MiB, as the `zstd` command allows."""

_RLE, _RESERVED = 1, 3
_MAX_BLOCK = 128 * 2**10


class ZstdStream(io.RawIOBase):
    """Reads forward block by block, and jumps to the frames it has seen or was told of.

    Args:
        file: the compressed file.
        points: what `points` of another stream over the same file gave.

    Raises:
        EOFError: by reading, where the file is cut.
        zstandard.ZstdError: by reading, where it is damaged.
    """

    def __init__(self, file: BinaryIO, points: bytes = b"") -> None:
        super().__init__()
        self._file = file
        self._frames: list[tuple[int, int]] = _frames(points)
        self._blocks = self._decompress(*self._frames[0])
        self._position = 0
        self._block = b""
        self._taken = 0

    def points(self) -> bytes:
        """Where frames begin: (compressed, uncompressed) offsets as JSON."""
        return json.dumps(self._frames, separators=(",", ":")).encode()

    def close(self) -> None:
        """Give the memory back; `file` stays open."""
        self._blocks, self._block = iter(()), b""
        super().close()

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always, at the cost of decompressing from the frame's start."""
        return True

    def tell(self) -> int:
        """The uncompressed offset."""
        return self._position

    def start_before(self, offset: int) -> int:
        """The uncompressed offset of the last known frame that begins at or before `offset`."""
        return self._frames[bisect_right(self._frames, offset, key=_uncompressed) - 1][1]

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to an uncompressed offset; beyond the end is the end.

        Raises:
            ValueError: if `offset` counts from the end, which is not known.
        """
        if whence == io.SEEK_END:
            raise ValueError("the end of a zstd stream is not known")
        target = offset + (self._position if whence == io.SEEK_CUR else 0)
        start = self.start_before(target)
        if target < self._position or start > self._position:
            self._jump(start)
        while self._position < target and self._fill():
            self._take(target - self._position)
        return self._position

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override] # typeshed's Buffer has no len
        """As many bytes as the current block still has, 0 at the end."""
        if not self._fill():
            return 0
        data = self._take(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _take(self, size: int) -> bytes:
        data = self._block[self._taken : self._taken + size]
        self._taken += len(data)
        self._position += len(data)
        return data

    def _fill(self) -> bool:
        """Make sure there is a block with bytes left; False at the end."""
        while self._taken == len(self._block):
            block = next(self._blocks, None)
            if block is None:
                return False
            self._block, self._taken = block, 0
        return True

    def _jump(self, start: int) -> None:
        at = bisect_right(self._frames, start, key=_uncompressed) - 1
        self._position, self._block, self._taken = start, b"", 0
        self._blocks = self._decompress(*self._frames[at])

    def _decompress(self, offset: int, position: int) -> Iterator[bytes]:
        """Uncompressed blocks from a frame's start on, noting where further frames begin."""
        self._file.seek(offset)
        while True:
            if position > self._frames[-1][1]:
                self._frames.append((self._file.tell(), position))
            head = self._file.read(4)
            if not head:
                return
            if len(head) < len(_MAGIC):
                raise EOFError("the zstd stream is cut")
            if _is_skippable(head):
                self._file.seek(int.from_bytes(self._exact(4), "little"), io.SEEK_CUR)
                continue
            frame = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW).decompressobj()
            for piece in self._pieces(head):
                block = frame.decompress(piece)
                position += len(block)
                yield block

    def _pieces(self, head: bytes) -> Iterator[bytes]:
        """A frame, block by block: each at most 128 KiB when uncompressed."""
        if head != _MAGIC:
            raise zstandard.ZstdError(f"no zstd frame begins with {head.hex()}")
        descriptor = self._exact(1)
        single, checked = descriptor[0] >> 5 & 1, descriptor[0] >> 2 & 1
        size_bytes = (single, 2, 4, 8)[descriptor[0] >> 6]
        dictionary_bytes = (0, 1, 2, 4)[descriptor[0] & 3]
        yield head + descriptor + self._exact(1 - single + dictionary_bytes + size_bytes)
        last = False
        while not last:
            header = self._exact(3)
            fields = int.from_bytes(header, "little")
            last, kind, size = bool(fields & 1), fields >> 1 & 3, fields >> 3
            if kind == _RESERVED or size > _MAX_BLOCK:
                raise zstandard.ZstdError(f"a block of kind {kind} and {size} bytes")
            yield header + self._exact(1 if kind == _RLE else size)
        if checked:
            yield self._exact(4)

    def _exact(self, size: int) -> bytes:
        data = self._file.read(size)
        if len(data) < size:
            raise EOFError("the zstd stream is cut")
        return data


def is_zstd(start: bytes) -> bool:
    """Whether a file with these first bytes is a zstd file; some tools begin with a note."""
    return start.startswith(_MAGIC) or _is_skippable(start[:4])


def _is_skippable(head: bytes) -> bool:
    return head[1:] == _SKIPPABLE and head[0] >> 4 == 5


def _uncompressed(frame: tuple[int, int]) -> int:
    return frame[1]


def _frames(points: bytes) -> list[tuple[int, int]]:
    found = [(int(at), int(position)) for at, position in json.loads(points or b"[]")]
    return found or [(0, 0)]
