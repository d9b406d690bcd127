"""The queries file."""

import hashlib
import pickle
from pathlib import Path

import pytest

from schemas.codes import QueryOrigin, RejectReason
from schemas.errors import ConfigError, StorageError
from schemas.geometry import Box
from schemas.records import ByteRange, Member, Shard, ShardKind, Truth, TruthBox, Unit
from transforms.queries import QueriesFile, load_queries

JSONL = """\
{"member": "es/inicio.png", "instruction": "Abrir el menú", "bbox_px": [1, 2, 30, 40]}

{"member": "inicio", "instruction": "An\u0303o nuevo", "shard": "a.tar", "nota": "ignorada"}
{"member": "inicio", "instruction": "Otra", "shard": "/datos/b.tar"}
{"member": "nadie", "instruction": "Perdida"}
"""


def load(folder: Path, text: str | bytes, name: str = "q.jsonl") -> QueriesFile:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return load_queries(str(path))


def instructions(queries: QueriesFile, shard: str, member: str) -> list[str]:
    return [query.instruction for query in queries.for_member(shard, member)]


def unit(shard: str, *names: str) -> Unit:
    members = tuple(Member(name, ByteRange(name, 0, 1)) for name in names)
    return Unit("u", Shard(shard, ShardKind.TAR), 0, members)


def test_lines_find_their_screens(tmp_path: Path) -> None:
    queries = load(tmp_path, JSONL)
    assert instructions(queries, "/datos/a.tar", "es/inicio.png") == ["Abrir el menú", "Año nuevo"]
    assert instructions(queries, "s3://x/a.tar", "mx/inicio.webp") == ["Año nuevo"]
    assert instructions(queries, "/datos/b.tar", "inicio.jpg") == ["Otra"]
    assert instructions(queries, "/otros/b.tar", "inicio.jpg") == []
    assert instructions(queries, "/datos/a.tar", "fin.png") == []


def test_queries_carry_what_the_line_says(tmp_path: Path) -> None:
    first, second = load(tmp_path, JSONL).for_member("/datos/a.tar", "es/inicio.png")
    assert (first.index, second.index) == (0, 1)
    assert first.origin == QueryOrigin.QUERIES_FILE
    assert first.truth == Truth(True, (TruthBox(Box(1, 2, 30, 40)),))
    assert (second.instruction_raw, second.truth) == ("An\u0303o nuevo", None)


def test_names_match_in_either_unicode_form(tmp_path: Path) -> None:
    queries = load(tmp_path, '{"member": "bot\u00f3n.png", "instruction": "x"}')
    assert instructions(queries, "/a.tar", "boto\u0301n.png") == ["x"]


def test_lines_without_a_screen_are_named(tmp_path: Path) -> None:
    queries = load(tmp_path, JSONL)
    problems = queries.unmatched([unit("/datos/a.tar", "es/inicio.png"), unit("/c.tar", "fin.png")])
    assert [(p.member, p.reason) for p in problems] == [
        ("inicio", RejectReason.QUERY_UNMATCHED),
        ("nadie", RejectReason.QUERY_UNMATCHED),
    ]
    assert "line 4" in problems[0].detail
    assert "/datos/b.tar" in problems[0].detail
    assert "line 5" in problems[1].detail


@pytest.mark.parametrize(
    "data",
    [
        'member,instruction\na.png,Guardar\nb.png,"«Año, fin»"\n'.encode(),
        '\ufeffmember,instruction\r\na.png,Guardar\r\nb.png,"«Año, fin»"\r\n'.encode(),
        "member;instruction\na.png;Guardar\nb.png;«Año, fin»\n".encode("cp1252"),
        "instruction\tmember\nGuardar\ta.png\n«Año, fin»\tb.png\n".encode(),
    ],
    ids=["comma", "bom", "semicolon_cp1252", "tab"],
)
def test_csv_as_spreadsheets_write_it(tmp_path: Path, data: bytes) -> None:
    queries = load(tmp_path, data, "q.csv")
    assert instructions(queries, "/x.tar", "a.png") == ["Guardar"]
    assert instructions(queries, "/x.tar", "b.png") == ["«Año, fin»"]


def test_a_csv_line_with_a_comma_too_many_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="line 2: more fields than the header has"):
        load(tmp_path, "member,instruction\na.png,Uno, dos\n", "q.csv")


@pytest.mark.parametrize("box", ["1 2 30 40", "[1, 2, 30, 40]", '"1,2,30,40"', "1.0 2 30 40"])
def test_boxes_in_csv(tmp_path: Path, box: str) -> None:
    cell = f'"{box}"' if "," in box and not box.startswith('"') else box
    queries = load(tmp_path, f"member,instruction,bbox_px\na,b,{cell}\n", "q.csv")
    assert queries.lines[0].box == Box(1, 2, 30, 40)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "not JSON"),
        ("[1]", "JSON object"),
        ('{"instruction": "x"}', "no `member`"),
        ('{"member": "x", "instrucion": "y"}', "instrucion"),
        ('{"member": "x", "instruction": ""}', "`instruction` must be a text"),
        ('{"member": 7, "instruction": "y"}', "`member` must be a text, not 7"),
        ('{"member": "x", "instruction": "y", "shard": 3}', "`shard`"),
        ('{"member": "x", "instruction": "y", "bbox_px": [1, 2, 3]}', "four numbers"),
        ('{"member": "x", "instruction": "y", "bbox_px": [9, 2, 3, 4]}', "not in order"),
        ('{"member": "x", "instruction": "y", "bbox_px": "0,53 0,21"}', "not in order"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    good = '{"member": "a", "instruction": "b"}\n\n'
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, good + line)
    assert "q.jsonl, line 3" in str(caught.value)
    assert said in str(caught.value)


def test_an_empty_file_is_an_error_and_a_missing_one_too(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no queries"):
        load(tmp_path, "\n\n")
    with pytest.raises(StorageError, match="falta"):
        load_queries(str(tmp_path / "falta.jsonl"))


def test_the_hash_is_of_the_bytes_and_the_file_can_be_sent_to_workers(tmp_path: Path) -> None:
    queries = load(tmp_path, JSONL)
    assert queries.sha256 == hashlib.sha256(JSONL.encode()).hexdigest()
    queries.for_member("/datos/a.tar", "inicio.png")
    again = pickle.loads(pickle.dumps(queries))
    assert instructions(again, "/datos/b.tar", "inicio.jpg") == ["Otra"]
