import json
from pathlib import Path

import pyarrow as pa
import pytest

from schemas.tables import SCHEMA_VERSION, TABLES

GOLDEN = Path(__file__).with_name("golden_tables.json")
"""What readers rely on. A field may be added, with a higher minor version; none may change."""


def described(schema: pa.Schema) -> list[dict[str, object]]:
    return [
        {"name": field.name, "type": str(field.type), "nullable": field.nullable}
        for field in schema
    ]


def test_the_tables_are_what_the_golden_file_says() -> None:
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert golden["schema_version"] == SCHEMA_VERSION
    assert golden["tables"] == {name: described(schema) for name, schema in TABLES.items()}


def leaves(field: pa.Field) -> list[pa.Field]:
    kind = field.type
    if pa.types.is_list(kind):
        kind = kind.value_type
    inner = list(kind) if pa.types.is_struct(kind) else []
    return [field, *(leaf for child in inner for leaf in leaves(child))]


@pytest.mark.parametrize("name", TABLES)
def test_every_field_says_what_it_is(name: str) -> None:
    for field in TABLES[name]:
        for leaf in leaves(field):
            assert leaf.metadata, leaf.name
            assert len(leaf.metadata[b"description"]) > 5, leaf.name


def test_the_version_travels_with_the_schema() -> None:
    for name, schema in TABLES.items():
        assert schema.metadata[b"pantalla.table"] == name.encode()
        assert schema.metadata[b"pantalla.schema_version"] == SCHEMA_VERSION.encode()
