from hypothesis import given
from hypothesis import strategies as st

from schemas.codes import Role, Verdict
from schemas.ids import canonical_json, content_id, sha256_hex, unit_draw

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), json_values))
def test_an_id_does_not_depend_on_the_order_of_keys(value: dict[str, object]) -> None:
    assert content_id(value) == content_id(dict(reversed(value.items())))


def test_ids_are_the_same_for_ever() -> None:
    assert content_id({"pregunta": "¿Dónde está?", "k": 5}) == "8ed163ba261e173f2b70c7c723147fca"
    assert sha256_hex(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_canonical_json_keeps_spanish_readable() -> None:
    assert canonical_json({"b": "ñ", "a": [1, None]}) == '{"a":[1,null],"b":"ñ"}'


@given(st.text(), st.text())
def test_a_draw_is_a_share_fixed_by_its_id(identifier: str, purpose: str) -> None:
    assert 0 <= unit_draw(identifier, purpose) < 1
    assert unit_draw(identifier, purpose) == unit_draw(identifier, purpose)


def test_draws_for_two_purposes_are_independent() -> None:
    drawn = [
        (unit_draw(str(i), "audit") < 0.5, unit_draw(str(i), "test") < 0.5) for i in range(999)
    ]
    assert 180 < drawn.count((True, True)) < 320


def test_codes_carry_their_spanish() -> None:
    assert (Role.BUTTON, Role.BUTTON.spanish) == ("button", "Botón")
    assert Verdict("absent").spanish == "No existe en la pantalla"
    for code in (*Role, *Verdict):
        assert code.spanish[0].isupper()
        assert code.value.isascii()
