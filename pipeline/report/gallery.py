"""Chooses the screens that the page shows, and makes them ready to be drawn."""

from __future__ import annotations

import base64
import io
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from PIL import Image

from pipeline.dataset import Dataset
from pipeline.rows import SampleRow, ScreenRow, sample_rows
from schemas.errors import DatasetError, MemberRejected, StorageError
from schemas.ids import unit_draw

MAX_SCREENS = 60
"""Screens on one page: about 4 MB of thumbnails, which a browser opens at once."""

_THUMBNAIL = (800, 1000)
_JPEG_QUALITY = 74


@dataclass(frozen=True, slots=True)
class Card:
    """One screen of the page with the samples that ask about it.

    Attributes:
        thumbnail: a `data:` URI of a JPEG, or "" where the pixels could not be read.
        problem: why not.
    """

    screen: ScreenRow
    samples: tuple[SampleRow, ...]
    thumbnail: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class RejectLine:
    """One row of `rejects`, as far as the page shows it."""

    where: str
    stage: str
    reason: str
    detail: str


def make_cards(dataset: Dataset, limit: int = MAX_SCREENS) -> tuple[list[Card], int]:
    """The screens to show, and how many are left out.

    The choice depends on the screens alone: applications take turns, and within one the order is a
    draw by screen id, so that the same dataset always gives the same page.

    Raises:
        DatasetError: if a committed part is missing or damaged.
    """
    chosen, unique = choose(dataset.screens(), limit)
    wanted = {screen.screen_id for screen in chosen}
    samples: dict[str, list[SampleRow]] = defaultdict(list)
    units = {screen.unit_id for screen in chosen}
    for record, part in dataset.parts("annotations"):
        if record.unit_id in units:
            for sample in sample_rows(part):
                if sample.screen_id in wanted:
                    samples[sample.screen_id].append(sample)
    cards = [_card(dataset, screen, samples[screen.screen_id]) for screen in chosen]
    return cards, unique - len(chosen)


def choose(screens: Iterable[ScreenRow], limit: int) -> tuple[list[ScreenRow], int]:
    """At most `limit` screens, and how many different ones there are.

    Those with questions come first, applications take turns, drawn by id. Never more than `limit`
    screens of an application are held at once.
    """
    groups: dict[str, dict[str, ScreenRow]] = defaultdict(dict)
    seen: set[int] = set()
    for screen in screens:
        key = int(screen.screen_id[:15], 16)  # a short number: there may be millions
        if key in seen:
            continue
        seen.add(key)
        group = groups[screen.app or screen.shard]
        group[screen.screen_id] = screen
        if len(group) > 2 * limit:
            groups[screen.app or screen.shard] = _first(group, limit)
    ordered = [_first(groups[name], limit).values() for name in sorted(groups)]
    turns = zip_longest(*ordered)
    return [s for turn in turns for s in turn if s is not None][:limit], len(seen)


def _first(group: Mapping[str, ScreenRow], limit: int) -> dict[str, ScreenRow]:
    def order(screen: ScreenRow) -> tuple[bool, float]:
        return screen.query_count == 0, unit_draw(screen.screen_id, "report")

    return {screen.screen_id: screen for screen in sorted(group.values(), key=order)[:limit]}


def reject_lines(dataset: Dataset, limit: int) -> list[RejectLine]:
    """The first `limit` rejects, in commit order."""
    lines: list[RejectLine] = []
    for _, part in dataset.parts("rejects"):
        for row in part.slice(0, limit - len(lines)).to_pylist():
            name = row["shard"].rstrip("/").rpartition("/")[2]
            where = f"{name}: {row['member']}" if row["member"] else name
            lines.append(RejectLine(where, row["stage"], row["reason"], row["detail"]))
        if len(lines) >= limit:
            break
    return lines


def _card(dataset: Dataset, screen: ScreenRow, samples: Sequence[SampleRow]) -> Card:
    ordered = tuple(sorted(samples, key=lambda sample: sample.index))
    try:
        picture = dataset.picture(screen)
    except (DatasetError, StorageError, MemberRejected) as error:
        # The report must come out even when a shard has moved since; the page says which.
        return Card(screen, ordered, "", str(error))
    return Card(screen, ordered, thumbnail_uri(picture))


def thumbnail_uri(picture: Image.Image) -> str:
    """`picture` as a small JPEG in a `data:` URI, at most 800 x 1000 pixels."""
    small = picture.copy()
    small.thumbnail(_THUMBNAIL, Image.Resampling.LANCZOS, reducing_gap=3.0)
    sink = io.BytesIO()
    small.save(sink, "JPEG", quality=_JPEG_QUALITY, optimize=True)
    return "data:image/jpeg;base64," + base64.b64encode(sink.getvalue()).decode("ascii")
