"""Sidecars: what is read, what is repaired, what is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.codes import QueryKind, QueryOrigin, RejectReason
from schemas.geometry import Box, Size
from schemas.provenance import Provenance
from schemas.records import Truth, TruthBox
from transforms.sidecar import Sidecar, parse_sidecar

ELEMENTS = [
    {"role": "link", "name": "Inicio", "bbox_px": [10, 20, 60, 40], "visible": True},
    {"role": "button", "name": "Guardar", "bbox_px": [70, 20, 120.5, 40], "occluded": False},
    {"role": "button", "name": "Tapado", "bbox_px": [0, 0, 9, 9], "occluded": True},
    {"role": "img", "name": "Oculto", "bbox_px": [0, 0, 9, 9], "visible": False},
    {"role": "img", "name": "Sin caja"},
]
FULL = {
    "screen": "oscar-001",
    "app": "oscar",
    "app_version": "django-oscar 4.2.1",
    "licence": "BSD-3-Clause",
    "url_path": "/catalogue/",
    "locale": "es-AR",
    "html_lang": "es-ar",
    "page_title": "Todos los productos",
    "color_scheme": "light",
    "viewport_css": [200, 100],
    "device_pixel_ratio": 2,
    "image_size": [400, 200],
    "elements": ELEMENTS,
    "queries": [
        {
            "instruction": "Hacé clic en «Guardar»",
            "kind": "text",
            "target": 1,
            "bbox_px": [70, 20, 120, 40],
            "accept_bbox_px": [[10, 20, 60, 40]],
        },
        {"instruction": "Ver los favoritos", "target": None, "bbox_px": None},
        {"instruction": "Volver al inicio", "target": 0},
        {"instruction": "Sin verdad"},
    ],
}


def parse(value: object) -> Sidecar:
    return parse_sidecar(json.dumps(value, ensure_ascii=False).encode())


def one_truth(query: dict[str, object], **fields: object) -> tuple[Truth | None, tuple[str, ...]]:
    result = parse({"queries": [{"instruction": "x", **query}], **fields})
    return result.queries[0].truth, result.flags


def test_no_sidecar_is_an_empty_one() -> None:
    assert parse_sidecar(None) == Sidecar()


def test_a_full_sidecar() -> None:
    result = parse(FULL)
    assert result.provenance == Provenance(
        app="oscar",
        app_version="django-oscar 4.2.1",
        licence="BSD-3-Clause",
        locale="es-AR",
        html_lang="es-ar",
        page_title="Todos los productos",
        url_path="/catalogue/",
        color_scheme="light",
        device_pixel_ratio=2.0,
    )
    assert result.image_size == Size(400, 200)
    assert result.elements == (
        TruthBox(Box(10, 20, 60, 40), "link", "Inicio"),
        TruthBox(Box(70, 20, 120.5, 40), "button", "Guardar"),
    )
    assert [(q.index, q.instruction) for q in result.queries] == [
        (0, "Hacé clic en «Guardar»"),
        (1, "Ver los favoritos"),
        (2, "Volver al inicio"),
        (3, "Sin verdad"),
    ]
    assert [query.truth for query in result.queries] == [
        Truth(
            True,
            (TruthBox(Box(70, 20, 120, 40), "button", "Guardar"), TruthBox(Box(10, 20, 60, 40))),
        ),
        Truth(False),
        Truth(True, (TruthBox(Box(10, 20, 60, 40), "link", "Inicio"),)),
        None,
    ]
    assert {(q.kind, q.origin) for q in result.queries} == {
        (QueryKind.GROUNDING, QueryOrigin.SIDECAR)
    }
    assert (result.flags, result.rejects) == ((), ())


def test_plain_texts_are_queries() -> None:
    result = parse({"queries": ["Guardar", {"instruction": "Abrir"}]})
    assert [query.instruction for query in result.queries] == ["Guardar", "Abrir"]


def test_instructions_are_composed_and_the_given_text_is_kept() -> None:
    nfd, padded, same = "An\u0303o", "  Menú \n", "Ñ"
    result = parse({"queries": [nfd, padded, same]})
    assert [(q.instruction, q.instruction_raw) for q in result.queries] == [
        ("Año", nfd),
        ("Menú", padded),
        ("Ñ", None),
    ]


def test_enye_is_never_folded() -> None:
    assert [q.instruction for q in parse({"queries": ["año", "ano"]}).queries] == ["año", "ano"]


@pytest.mark.parametrize("query", [{}, {"instruction": ""}, {"instruction": 7}, 7, None, "  ", []])
def test_a_bad_query_costs_itself_alone(query: object) -> None:
    result = parse({"queries": ["uno", query, "tres"]})
    assert [(q.index, q.instruction) for q in result.queries] == [(0, "uno"), (2, "tres")]
    (reject,) = result.rejects
    assert reject.reason == RejectReason.QUERY_INVALID
    assert "query 1" in reject.detail
    assert reject.instruction is not None


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[1, 2]", b"null", b'"hola"', b"[" * 100_000, b'{"a": ' + b"9" * 5000 + b"}"],
    ids=["empty", "open", "list", "null", "text", "deep", "long"],
)
def test_a_bad_sidecar_costs_no_screen(data: bytes) -> None:
    result = parse_sidecar(data)
    assert (result.queries, result.provenance) == ((), Provenance())
    assert [reject.reason for reject in result.rejects] == [RejectReason.SIDECAR_INVALID]


def test_queries_of_the_wrong_type_leave_the_rest() -> None:
    result = parse({"app": "x", "queries": {"instruction": "y"}})
    assert (result.provenance.app, result.queries) == ("x", ())
    assert [reject.reason for reject in result.rejects] == [RejectReason.SIDECAR_INVALID]


TEXT = '{"page_title": "Búsqueda, MUÑOZ", "queries": ["Búsqueda — «MUÑOZ»"]}'


@pytest.mark.parametrize(
    ("data", "flags"),
    [
        (TEXT.encode(), ()),
        (TEXT.encode("utf-8-sig"), ("encoding_bom",)),
        (TEXT.encode("cp1252"), ("encoding_cp1252",)),
        (TEXT.encode("utf-16"), ("encoding_utf16",)),
        (TEXT.encode("utf-8-sig")[:3] + TEXT.encode("cp1252"), ("encoding_bom", "encoding_cp1252")),
    ],
)
def test_encodings_of_spanish_files(data: bytes, flags: tuple[str, ...]) -> None:
    result = parse_sidecar(data)
    assert result.queries[0].instruction == "Búsqueda — «MUÑOZ»"
    assert result.provenance.page_title == "Búsqueda, MUÑOZ"
    assert result.flags == flags


def test_latin1_is_read_where_windows_1252_has_no_such_byte() -> None:
    result = parse_sidecar(b'{"queries": ["a\xf1o \x81"]}')
    assert result.queries[0].instruction == "año \x81"
    assert result.flags == ("encoding_latin1",)


def test_text_broken_before_us_is_flagged_and_good_text_is_not() -> None:
    assert parse({"queries": ["MUÃ‘OZ"]}).flags == ("mojibake",)
    assert parse({"queries": ["MUÑOZ", "São Paulo", "SÃO PAULO", "Â"]}).flags == ()


def test_lone_surrogates_become_replacement_characters() -> None:
    result = parse_sidecar(b'{"app": "x\\ud83d", "queries": ["\\ud83d Guardar \\ud83d\\ude00"]}')
    assert result.queries[0].instruction == "\ufffd Guardar \U0001f600"
    assert result.provenance.app == "x\ufffd"


@pytest.mark.parametrize(
    ("box", "expected", "flags"),
    [
        ([10, 10, 20, 20], Box(10, 10, 20, 20), ()),
        ([-5, 10, 20, 20], Box(0, 10, 20, 20), ("truth_clipped",)),
        ([390, 190, 999, 999], Box(390, 190, 400, 200), ("truth_clipped",)),
        ([10, 10, 10, 20], None, ("truth_dropped",)),
        ([20, 10, 10, 20], None, ("truth_dropped",)),
        ([500, 10, 600, 20], None, ("truth_dropped",)),
        ([1, 2, 3], None, ("truth_dropped",)),
        (["1", 2, 3, 4], None, ("truth_dropped",)),
        ([True, 2, 3, 4], None, ("truth_dropped",)),
        ([float("nan"), 2, 3, 4], None, ("truth_dropped",)),
        ([1, 2, float("inf"), 4], None, ("truth_dropped",)),
        ([1, 2, 10**400, 4], None, ("truth_dropped",)),
        ({"x": 1}, None, ("truth_dropped",)),
    ],
)
def test_truth_lies_on_the_image_or_is_dropped(
    box: object, expected: Box | None, flags: tuple[str, ...]
) -> None:
    truth, found = one_truth({"bbox_px": box}, image_size=[400, 200])
    assert truth == (Truth(True, (TruthBox(expected),)) if expected else None)
    assert found == flags


def test_the_real_size_wins_over_the_stated_one() -> None:
    data = b'{"image_size": [900, 900], "queries": [{"instruction": "x", "bbox_px": [1,1,50,50]}]}'
    truth = parse_sidecar(data, Size(30, 40)).queries[0].truth
    assert truth == Truth(True, (TruthBox(Box(1, 1, 30, 40)),))


@pytest.mark.parametrize("target", [99, -1])
def test_a_target_that_does_not_exist_is_no_truth(target: int) -> None:
    assert one_truth({"target": target}, elements=ELEMENTS) == (None, ("truth_dropped",))


@pytest.mark.parametrize("target", [True, "1", 1.5, [1]])
def test_a_target_of_another_type_is_no_truth(target: object) -> None:
    assert one_truth({"target": target}, elements=ELEMENTS)[0] is None


@pytest.mark.parametrize("size", [[0, 5], [5], "5x5", [5.5, 5], None, [-1, 2]])
def test_a_senseless_image_size_is_unknown(size: object) -> None:
    assert parse({"image_size": size}).image_size is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=12,
)
FIELDS = sorted([*FULL, "target", "bbox_px", "instruction"])


@given(st.dictionaries(st.sampled_from(FIELDS), JSON))
def test_any_json_is_read_without_failing(value: dict[str, object]) -> None:
    result = parse_sidecar(json.dumps({"queries": [value], **value}).encode())
    assert all(query.instruction for query in result.queries)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_without_failing(data: bytes) -> None:
    result = parse_sidecar(data)
    assert result.queries == () or not result.rejects


HUGE = b"1" + b"0" * 400


def test_numbers_beyond_a_float_are_unknown_and_cost_nothing_else() -> None:
    data = b'{"device_pixel_ratio": %b, "app": %b, "image_size": [%b, 5], "queries": ["a"]}'
    found = parse_sidecar(data % (HUGE, HUGE, HUGE), Size(400, 200))
    assert found.provenance == Provenance()
    assert (found.image_size, len(found.queries), found.rejects) == (None, 1, ())


def test_nan_and_infinity_are_no_pixel_ratio() -> None:
    found = parse_sidecar(b'{"device_pixel_ratio": NaN, "app": Infinity}', Size(400, 200))
    assert found.provenance == Provenance()


@pytest.mark.parametrize("levels", [100, 900, 975, 985, 100_000])
def test_a_sidecar_nested_too_deep_costs_no_screen(levels: int) -> None:
    data = b'{"queries": [' + b"[" * levels + b"]" * levels + b"]}"
    (reject,) = parse_sidecar(data).rejects
    assert reject.reason is RejectReason.SIDECAR_INVALID
    assert "nested too deep" in reject.detail


def test_null_visibility_says_as_little_as_none() -> None:
    element = {"bbox_px": [1, 2, 3, 4], "visible": None, "occluded": None}
    found = parse_sidecar(json.dumps({"elements": [element]}).encode(), Size(400, 200))
    assert found.elements == (TruthBox(Box(1, 2, 3, 4)),)


@pytest.mark.parametrize(
    "text",
    [
        '{"queries": ["Abrí A"], "app": "x", "queries": ["Abrí B"]}',
        '{"queries": [{"instruction": "Abrí A", "instruction": "Abrí B"}]}',
        '{"queries": ["Abrí A"], "masks": [[0, 0, 9, 9]], "masks": []}',
    ],
)
def test_two_values_of_one_key_are_refused_by_name_and_never_chosen_from(text: str) -> None:
    result = parse_sidecar(text.encode())
    (reject,) = result.rejects
    assert reject.reason is RejectReason.SIDECAR_INVALID
    key = "instruction" if "instruction" in text else "masks" if "masks" in text else "queries"
    assert reject.detail == f"the key `{key}` stands twice in one object; keep one"
    assert (result.queries, result.masks) == ((), None)


def test_a_key_that_says_the_same_twice_does_no_harm() -> None:
    result = parse_sidecar(b'{"app": "x", "queries": ["Abrir"], "app": "x"}')
    assert result.provenance.app == "x"
    assert [query.instruction for query in result.queries] == ["Abrir"]
    assert result.rejects == ()


@pytest.mark.parametrize(
    "fields",
    [
        {"app": {"name": "oscar"}},
        {"app": ["oscar"]},
        {"locale": True},
        {"license": []},
        {"step": "tercero"},
        {"device_pixel_ratio": "2x"},
        {"dpr": 0},
    ],
)
def test_what_is_said_of_a_screen_and_cannot_be_kept_is_flagged(fields: dict[str, object]) -> None:
    result = parse({"queries": ["Abrir"], **fields})
    assert "provenance_dropped" in result.flags
    assert len(result.queries) == 1


@pytest.mark.parametrize(
    "fields", [{"app": None}, {"app": ""}, {"app": "x"}, {"app_version": 4.2}, {"step": 0}, {}]
)
def test_what_is_kept_or_says_nothing_is_not_flagged(fields: dict[str, object]) -> None:
    assert parse({"queries": ["Abrir"], **fields}).flags == ()
