"""Copies and look-alikes are decided by the plan alone, and nothing is asked twice."""

import random
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from image_bytes import encoded
from PIL import Image, ImageDraw, ImageFilter

from schemas.codes import QueryKind
from schemas.copies import query_key
from schemas.records import ByteRange, Member, Shard, ShardKind, Unit
from transforms.decode import ImageSettings, decode_image
from transforms.identity.contents import Content, candidates
from transforms.identity.copies import Foreign, NearSettings, mark_copies
from transforms.identity.near import MAX_DISTANCE, NearIndex, distance, perceptual_hash
from transforms.shards import split_units
from transforms.shards.base import ShardIndex


def plan(
    shards: dict[str, list[tuple[str, list[str]]]], per_unit: int = 2
) -> tuple[list[Unit], dict[str, dict[str, Content]]]:
    """Units and contents: for each shard, the picture and the questions of each member."""
    units: list[Unit] = []
    contents: dict[str, dict[str, Content]] = {}
    for uri, entries in shards.items():
        members = tuple(
            Member(f"{i}.png", ByteRange(f"{i}.png", 0, 9)) for i in range(len(entries))
        )
        units += split_units(Shard(uri, ShardKind.TAR, 1), ShardIndex(members), per_unit)
        contents[uri] = {
            m.name: Content(m.name, picture, tuple(asked))
            for m, (picture, asked) in zip(members, entries, strict=True)
        }
    return units, contents


def keys(unit: Unit, member: Member, content: Content) -> Iterable[str]:
    return {query_key(QueryKind.GROUNDING, text) for text in content.instructions}


def rank(units: Iterable[Unit]) -> dict[str, int]:
    return {unit.unit_id: i for i, unit in enumerate(units)}


def asked_after(
    units: Iterable[Unit], contents: dict[str, dict[str, Content]]
) -> list[tuple[str, str]]:
    """Every (picture, question) that is put to the model."""
    found = []
    for unit in units:
        for member in unit.members:
            content = contents[unit.shard.uri][member.name]
            left = set(keys(unit, member, content))
            if member.copy:
                left -= set(member.copy.repeated)
            found += [(content.screen_id, key) for key in left]
    return found


shards_of_copies = st.dictionaries(
    st.sampled_from(["/a.tar", "/b.tar", "/c.tar"]),
    st.lists(
        st.tuples(st.sampled_from("XYZ"), st.lists(st.sampled_from("qrst"), max_size=3)), max_size=6
    ),
    min_size=1,
)


@given(shards_of_copies, st.randoms())
def test_every_question_about_a_picture_is_asked_once_whatever_the_order_of_the_list(
    shards: dict[str, list[tuple[str, list[str]]]], chance: random.Random
) -> None:
    units, contents = plan(shards)
    order = rank(units)
    marked = mark_copies(units, order, contents, keys)
    asked = asked_after(marked, contents)
    assert len(asked) == len(set(asked))
    wanted = {
        (p, query_key(QueryKind.GROUNDING, q)) for e in shards.values() for p, qs in e for q in qs
    }
    assert set(asked) == wanted
    shuffled = list(units)
    chance.shuffle(shuffled)
    again = mark_copies(shuffled, order, contents, keys)
    assert {u.unit_id: u for u in again} == {u.unit_id: u for u in marked}


def test_a_copy_names_the_first_and_repeats_what_any_earlier_one_asks() -> None:
    units, contents = plan({"/a.tar": [("X", ["q"]), ("Y", ["q"])], "/b.tar": [("X", ["q", "r"])],
                            "/c.tar": [("X", ["r", "s"])]})  # fmt: skip
    marked = {u.shard.uri: u.members for u in mark_copies(units, rank(units), contents, keys)}
    assert [member.copy for member in marked["/a.tar"]] == [None, None]
    b, c = marked["/b.tar"][0].copy, marked["/c.tar"][0].copy
    assert b is not None
    assert c is not None
    assert (b.first, c.first) == ("/a.tar#0.png", "/a.tar#0.png")
    assert b.repeated == (query_key(QueryKind.GROUNDING, "q"),)
    assert c.repeated == (query_key(QueryKind.GROUNDING, "r"),)


def test_a_picture_of_the_dataset_that_the_plan_does_not_hold_comes_first() -> None:
    units, contents = plan({"/b.tar": [("X", ["q", "r"])]})
    foreign = [Foreign("X", "/old.tar#1.png", 9, frozenset({query_key(QueryKind.GROUNDING, "q")}))]
    ((member,),) = (u.members for u in mark_copies(units, rank(units), contents, keys, foreign))
    assert member.copy is not None
    assert member.copy.first == "/old.tar#1.png"
    assert member.copy.repeated == (query_key(QueryKind.GROUNDING, "q"),)


def test_only_members_of_one_size_and_rows_of_unknown_size_are_read() -> None:
    sizes = {"a": 10, "b": 11, "c": 10, "d": 12}
    members = tuple(Member(n, ByteRange(n, 0, size)) for n, size in sizes.items())
    units = split_units(Shard("/a.tar", ShardKind.TAR, 1), ShardIndex(members), 2)
    assert [m.name for u in candidates(units) for m in u.members] == ["a", "c"]
    assert [m.name for u in candidates(units, [12]) for m in u.members] == ["a", "c", "d"]
    rows = tuple(Member(f"row-{i}", ByteRange(f"row-{i}", None, 0), row=i) for i in range(3))
    table = split_units(Shard("/t.parquet", ShardKind.PARQUET, 1), ShardIndex(rows), 2)
    # A row of unknown size may be a copy of any.
    assert sum(len(u.members) for u in candidates([*units[:1], *table])) == 5
    assert candidates(units[:1]) == []


def flipped(value: str, bits: Iterable[int]) -> str:
    number = int(value, 16)
    for bit in bits:
        number ^= 1 << bit
    return f"{number:064x}"


hashes = st.integers(0, 2**256 - 1).map(lambda number: f"{number:064x}")


@given(
    hashes, st.sets(st.integers(0, 255), max_size=MAX_DISTANCE + 3), st.integers(0, MAX_DISTANCE)
)
def test_nothing_within_the_limit_is_missed_and_nothing_beyond_it_found(
    value: str, bits: set[int], limit: int
) -> None:
    index = NearIndex(limit)
    other = flipped(value, bits)
    index.add(0, value)
    assert distance(value, other) == len(bits)
    assert index.near(other) == ([(0, len(bits))] if len(bits) <= limit else [])


def test_a_limit_that_cannot_be_searched_is_refused() -> None:
    with pytest.raises(ValueError, match=r"0\.\.31"):
        NearIndex(MAX_DISTANCE + 1)


def near_plan(values: list[str]) -> tuple[list[Unit], dict[str, dict[str, Content]]]:
    units, contents = plan({"/a.tar": [(f"p{i}", ["q"]) for i in range(len(values))]})
    found = {
        name: Content(name, c.screen_id, c.instructions, values[i])
        for i, (name, c) in enumerate(contents["/a.tar"].items())
    }
    return units, {"/a.tar": found}


BASE = "0" * 64
CHAIN = [BASE, flipped(BASE, range(8)), flipped(BASE, range(16)), flipped(BASE, range(100, 180))]


@pytest.mark.parametrize(
    ("mode", "near", "skipped"),
    [
        ("mark", [None, "/a.tar#0.png", None, None], []),
        ("skip", [None, "/a.tar#0.png", None, None], [1]),
        ("keep_one", [None, "/a.tar#0.png", "/a.tar#0.png", None], [1, 2]),
    ],
)
def test_what_each_way_does_with_a_chain_of_look_alikes(
    mode: str, near: list[str | None], skipped: list[int]
) -> None:
    """The third looks like the second, and not like the first."""
    units, contents = near_plan(CHAIN)
    settings = NearSettings(mode, 10)  # type: ignore[arg-type] # one of the modes
    marked = mark_copies(units, rank(units), contents, keys, near=settings)
    looks = [m.look for u in marked for m in u.members]
    assert [look.near if look else "missing" for look in looks] == near
    assert [i for i, look in enumerate(looks) if look and look.skipped] == skipped


def test_a_picture_with_little_to_see_looks_like_nothing() -> None:
    assert perceptual_hash(Image.new("RGB", (800, 600), "white")) == ""
    units, contents = near_plan(["", ""])
    marked = mark_copies(units, rank(units), contents, keys, near=NearSettings("skip", 10))
    assert [m.look for u in marked for m in u.members] == [None, None]


def drawn(seed: int) -> Image.Image:
    """Something like a page: blocks and lines in places of its own."""
    chance = random.Random(seed)
    image = Image.new("RGB", (960, 600), "white")
    pen = ImageDraw.Draw(image)
    for _ in range(40):
        x, y = chance.randrange(900), chance.randrange(560)
        colour = tuple(chance.randrange(256) for _ in range(3))
        pen.rectangle((x, y, x + chance.randrange(20, 300), y + chance.randrange(10, 120)), colour)
    return image


def test_recompression_and_scaling_are_near_and_other_pages_are_far() -> None:
    page = drawn(1)
    first = perceptual_hash(page)
    small = page.resize((640, 400))
    jpeg = decode_image(encoded(page, "JPEG", quality=60), ImageSettings()).image
    for same in (small, jpeg, page.filter(ImageFilter.GaussianBlur(1))):
        assert distance(first, perceptual_hash(same)) <= 10
    assert all(distance(first, perceptual_hash(drawn(seed))) > 31 for seed in range(2, 8))
