"""What it costs to start in the middle of a gzip shard."""

import io
import random
import zlib

from transforms.shards.gzip_stream import GzipStream, gzip_points

PIECE = 8 * 2**20
CONTENT = random.Random(3).randbytes(8 * PIECE)  # nothing makes it smaller


class Counted(io.BytesIO):
    """Bytes that count what is read of them."""

    taken = 0

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        self.taken += len(data)
        return data


def packed() -> bytes:
    packer = zlib.compressobj(level=1, wbits=31)
    return packer.compress(CONTENT) + packer.flush()


def test_a_start_near_the_end_reads_under_two_percent_of_a_shard_of_two_gigabytes() -> None:
    """The places of a part of such a shard are told in proportion; all of them are read."""
    shard_bytes, data = 2 * 2**30, packed()
    points = gzip_points(io.BytesIO(data), shard_bytes)
    file = Counted(data)
    stream = GzipStream(file, shard_bytes, points)
    stream.seek(5 * PIECE)
    assert stream.read(PIECE) == CONTENT[5 * PIECE : 6 * PIECE]
    all_points = len(points) * shard_bytes / len(data)
    assert all_points + file.taken < 0.02 * shard_bytes


def test_reading_from_end_to_end_reads_little_twice() -> None:
    data = packed()
    points = gzip_points(io.BytesIO(data), len(data))
    file = Counted(data)
    stream = GzipStream(file, len(data), points)
    assert b"".join(iter(lambda: stream.read(PIECE), b"")) == CONTENT
    assert file.taken < 1.25 * len(data)
