"""The interface a reviewer gets: generated from the codes, in Spanish, accepted by the SDK."""

import unicodedata
from importlib.resources import files
from xml.etree import ElementTree as ET

import pytest
from label_studio_sdk.label_interface import LabelInterface

from label_studio.guide import PICTURES, guide_html, guide_page, is_untouched, picture_svg
from label_studio.interface import (
    HOTKEYS,
    build_config,
    config_controls,
    controls_of,
    data_keys,
    is_untouched_config,
)
from label_studio.words import WORDS, Variant
from schemas.codes import Role, Verdict


def tags(name: str) -> list[ET.Element]:
    return list(ET.fromstring(build_config()).iter(name))


def test_the_sdk_takes_the_config() -> None:
    LabelInterface(build_config()).validate()


def test_every_verdict_is_a_choice_with_its_code_and_key() -> None:
    (choices,) = [tag for tag in tags("Choices") if tag.get("name") == "verdict"]
    assert [(c.get("alias"), c.get("value"), c.get("hotkey")) for c in choices] == [
        ("correct", "Correcta", "1"),
        ("corrected", "Corregida", "2"),
        ("absent", "No existe en la pantalla", "3"),
        ("ambiguous", "Instrucción ambigua", "4"),
        ("illegible", "Ilegible", "5"),
        ("personal_data", "Contiene datos personales", "6"),
    ]
    assert choices.get("required") == "true"
    assert choices.get("choice") == "single-radio"
    assert choices.get("requiredMessage") == "Elija un veredicto antes de enviar."


def test_every_role_is_a_box_label_and_a_class() -> None:
    roles = {role.value for role in Role}
    assert config_controls()["box"].aliases == roles | {"element"}
    assert config_controls()["role"].aliases == roles


def test_controls_are_named_as_results_will_name_them() -> None:
    assert {name: (c.kind, c.target) for name, c in config_controls().items()} == {
        "verdict": ("choices", "image"),
        "role": ("choices", "image"),
        "instruction_fix": ("textarea", "image"),
        "point": ("keypointlabels", "image"),
        "box": ("rectanglelabels", "image"),
        "candidate": ("keypointlabels", "image"),
        "candidate_box": ("rectanglelabels", "image"),
        "text": ("textarea", "image"),
    }


def test_the_interface_shows_four_keys_of_the_data() -> None:
    assert data_keys() == {"question", "instruction", "answer", "image"}


def test_what_shows_no_key_has_none_that_is_pressed_by_a_slip() -> None:
    unseen = [tag for tag in tags("Choice") if tag.get("alias") in {role.value for role in Role}]
    unseen += [tag for tag in tags("Label") if tag.get("alias") == "candidate"]
    keys = [str(tag.get("hotkey")) for tag in unseen]
    assert len(set(keys)) == len(keys) == 17
    assert all(key.startswith("ctrl+alt+shift+f") for key in keys)


def test_colours_and_texts_are_told_apart() -> None:
    (boxes,) = [tag for tag in tags("RectangleLabels") if tag.get("name") == "box"]
    labels = list(boxes)
    assert len({label.get("background") for label in labels}) == len(labels) == 16
    assert len({label.get("value") for label in labels}) == 16


def test_what_only_some_verdicts_need_comes_with_them() -> None:
    conditions = {
        control.get("name"): view.get("whenChoiceValue")
        for view in tags("View")
        if view.get("whenTagName") == "verdict"
        for control in view.iter()
        if control.get("name")
    }
    assert conditions == {
        "point": "corrected",
        "box": "corrected",
        "text": "corrected",
        "role": "corrected",
        "instruction_fix": "corrected,ambiguous",
    }
    codes = {verdict.value for verdict in Verdict}
    assert all(set(str(value).split(",")) <= codes for value in conditions.values())


@pytest.mark.parametrize("variant", list(Variant))
def test_variants_differ_in_words_alone(variant: Variant) -> None:
    config = build_config(variant)
    LabelInterface(config).validate()
    assert controls_of(config) == controls_of(build_config())
    assert is_untouched_config(config)
    assert not is_untouched_config(config.replace("Correcta", "Bien"))


@pytest.mark.parametrize("variant", list(Variant))
def test_what_people_read_is_composed_unicode(variant: Variant) -> None:
    for text in (build_config(variant), guide_html(variant), guide_page(variant)):
        assert unicodedata.is_normalized("NFC", text)


@pytest.mark.parametrize("variant", list(Variant))
def test_the_guide_explains_every_verdict_and_the_english_words(variant: Variant) -> None:
    guide = guide_html(variant)
    for verdict in Verdict:
        assert f"<b>{verdict.spanish}</b> (tecla {HOTKEYS[verdict]})" in guide
    for word in ("Submit", "Update", "Skip", "Regions", "Label All Tasks", "Warning"):
        assert f"<b>{word}</b>" in guide or word in guide


@pytest.mark.parametrize(
    ("variant", "said", "unsaid"),
    [
        (Variant.NEUTRAL, "Usted dice", ("Vos", "Tú", "mouse", "Agregar")),
        (Variant.ARGENTINA, "Vos decís", ("Usted", "Tú", " elija ", "ratón", "Añadir")),
        (Variant.MEXICO, "Usted dice", ("Vos", "Tú", "ratón", "Añadir")),
        (Variant.SPAIN, "Tú dices", ("Usted", "Vos", " elija ", "mouse", "Agregar")),
    ],
)
def test_each_guide_keeps_to_its_own_register(
    variant: Variant, said: str, unsaid: tuple[str, ...]
) -> None:
    guide = guide_html(variant)
    assert said in guide
    assert not [word for word in unsaid if word in guide]


def test_every_variant_has_the_same_words_and_uses_them_all() -> None:
    assert {frozenset(words) for words in WORDS.values()} == {frozenset(WORDS[Variant.NEUTRAL])}
    source = "".join(
        files("label_studio").joinpath(name).read_text(encoding="utf-8")
        for name in ("guide_es.html", "interface.py", "tasks.py")
    )
    for word in WORDS[Variant.NEUTRAL]:
        assert f"w.{word}" in source or f"words['{word}']" in source or f'words["{word}"]' in source


def test_a_guide_somebody_edited_is_told_from_ours() -> None:
    guide = guide_html(Variant.SPAIN, lambda name: f"/data/upload/2/{name}.svg")
    assert is_untouched(guide)
    assert not is_untouched(guide.replace("captura", "pantalla", 1))
    assert not is_untouched("")
    assert "data:" not in guide


def test_the_page_of_the_guide_needs_nothing_else() -> None:
    page = guide_page(Variant.ARGENTINA)
    assert '<html lang="es-AR">' in page
    assert page.count('src="data:image/svg+xml;base64,') == len(PICTURES)
    for name in PICTURES:
        ET.fromstring(picture_svg(name).decode())
