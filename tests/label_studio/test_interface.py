"""The interface a reviewer gets: generated from the codes, in Spanish, accepted by the SDK."""

import unicodedata
from xml.etree import ElementTree as ET

from label_studio_sdk.label_interface import LabelInterface

from label_studio.guide import guide_html
from label_studio.interface import (
    HOTKEYS,
    build_config,
    config_controls,
    data_keys,
)
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
    }


def test_the_interface_shows_four_keys_of_the_data() -> None:
    assert data_keys() == {"question", "instruction", "answer", "image"}


def test_what_shows_no_key_has_none_that_is_pressed_by_a_slip() -> None:
    unseen = [tag for tag in tags("Choice") if tag.get("alias") in {role.value for role in Role}]
    unseen += [tag for tag in tags("Label") if tag.get("alias") == "candidate"]
    keys = [str(tag.get("hotkey")) for tag in unseen]
    assert len(set(keys)) == len(keys) == 16
    assert all(key.startswith("ctrl+alt+shift+f") for key in keys)


def test_colours_and_texts_are_told_apart() -> None:
    labels = [label for tag in tags("RectangleLabels") for label in tag]
    assert len({label.get("background") for label in labels}) == len(labels) == 16
    assert len({label.get("value") for label in labels}) == 16


def test_what_people_read_is_composed_unicode() -> None:
    for text in (build_config(), guide_html()):
        assert unicodedata.is_normalized("NFC", text)


def test_the_guide_explains_every_verdict_and_the_english_words() -> None:
    guide = guide_html()
    for verdict in Verdict:
        assert f"<b>{verdict.spanish}</b> (tecla {HOTKEYS[verdict]})" in guide
    for word in ("Submit", "Update", "Skip", "Regions", "Label All Tasks", "Warning"):
        assert f"<b>{word}</b>" in guide or word in guide
    assert "Usted" in guide
