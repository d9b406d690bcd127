"""The labelling interface: one XML config for both kinds of query, generated from the codes.

Names of controls are machine codes that `pull` reads; texts are Spanish. Predictions and results
carry the `alias` of a label, never its text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from xml.etree import ElementTree as ET

from label_studio.words import WORDS, Variant, capitalized
from schemas.codes import Role, Verdict
from schemas.ids import content_id

IMAGE = "image"
BOX = "box"
POINT = "point"
VERDICT = "verdict"
ROLE = "role"
INSTRUCTION = "instruction_fix"
TEXT = "text"
"""Text of one box: belongs to the region whose id it carries."""
CANDIDATE_BOX = "candidate_box"
"""Control of the boxes of other answers; `CANDIDATE` is that of their points."""

ELEMENT = "element"
"""Alias of a box whose class nobody has said yet."""
CLICK = "click"
"""Alias of the click point: the model's, or the reviewer's."""
CANDIDATE = "candidate"
"""Alias of a place that another of the k answers gave: shown, not part of the review."""
SHOWN_ONLY = frozenset({CANDIDATE, CANDIDATE_BOX})
"""Controls whose regions are the model's other answers; a review never holds one of its own."""

CLICK_TEXT = "Punto de clic"
"""Spanish text of the click point's label."""
CANDIDATE_TEXT = "Otra respuesta del modelo"

POINT_WIDTH = 0.45
"""Radius of a drawn point, in percent of the image's width."""

_ELEMENT_COLOR = "#FF00B8"
_CLICK_COLOR = "#FF00B8"
_CANDIDATE_COLOR = "#8A8A8A"
_ROLE_COLORS: dict[Role, str] = {
    Role.BUTTON: "#E6194B",
    Role.LINK: "#0057FF",
    Role.TEXTBOX: "#008A3E",
    Role.CHECKBOX: "#B15E00",
    Role.RADIO: "#8B4513",
    Role.COMBOBOX: "#6A00D4",
    Role.MENUITEM: "#00839B",
    Role.TAB: "#C800C8",
    Role.SWITCH: "#7A7A00",
    Role.IMG: "#FF6A00",
    Role.HEADING: "#34495E",
    Role.CELL: "#5C7A99",
    Role.OPTION: "#D4007A",
    Role.SLIDER: "#4B8B00",
    Role.OTHER: "#505050",
}
HOTKEYS: dict[Verdict, str] = {
    Verdict.CORRECT: "1",
    Verdict.CORRECTED: "2",
    Verdict.ABSENT: "3",
    Verdict.AMBIGUOUS: "4",
    Verdict.ILLEGIBLE: "5",
    Verdict.PERSONAL_DATA: "6",
}
"""One key for each verdict; the guide names them too."""
_MARK = re.compile(r' className="pantalla-(?P<mark>[0-9a-f]{10})"')
"""On the outermost tag, a hash of the rest: tells an edited interface from an older one of ours."""
_UNPRESSED = "ctrl+alt+shift+f{}"
"""A key for what shows none: otherwise it gets an unseen letter, and a slip becomes a result."""

_STYLE = """
.pantalla-instruccion h2 { margin: 0 0 6px !important; font-size: 20px; line-height: 1.25;
  overflow-wrap: anywhere; }
.pantalla-hoja { display: flex; gap: 14px; align-items: flex-start; }
.pantalla-panel { flex: 0 0 264px; min-width: 0; }
.pantalla-panel h4, .pantalla-panel h5 { margin: 0 0 4px !important; }
.pantalla-panel h4 { font-size: 13px; font-weight: 400; line-height: 1.35; }
.pantalla-panel h5 { font-size: 13px; font-weight: 400; }
.pantalla-panel .lsf-choices { margin: 6px 0; }
.pantalla-panel .lsf-text-area { margin: 0 !important; }
.pantalla-etiquetas { display: flex; flex-wrap: wrap; margin: 6px 0 2px; }
.pantalla-etiquetas .lsf-labels { display: contents; }
.pantalla-etiquetas .lsf-label { margin: 0 4px 4px 0; font-size: 12px; }
.pantalla-oculto { display: none; }
.pantalla-imagen { flex: 1 1 0; min-width: 0; }
.pantalla-imagen .konvajs-content canvas {
  filter: drop-shadow(0 0 1px #fff) drop-shadow(0 0 1px #000); }
"""
"""The last rule outlines everything drawn in white and black: it shows on any colour."""


@dataclass(frozen=True, slots=True)
class Control:
    """A control of the interface, as its results name it.

    Attributes:
        kind: `type` of its results and key of its labels, for example `rectanglelabels`.
        target: name of the object it belongs to.
        aliases: machine codes it may carry.
    """

    kind: str
    target: str
    aliases: frozenset[str]


@lru_cache(maxsize=1)
def config_controls() -> dict[str, Control]:
    """The controls of the interface by name, read from the config itself."""
    return _controls(build_config())


def controls_of(config: str) -> dict[str, frozenset[str]]:
    """The aliases of every control of a config found on a server; none where it is not XML."""
    try:
        return {name: control.aliases for name, control in _controls(config).items()}
    except ET.ParseError:
        return {}


def reads_the_same(config: str) -> bool:
    """Whether answers given in a config found on a server read as those given in ours."""
    try:
        return _controls(config) == config_controls()
    except ET.ParseError:
        return False


def _controls(config: str) -> dict[str, Control]:
    controls = {}
    for tag in ET.fromstring(config).iter():  # noqa: S314 - ours, or checked by the server
        if "toName" in tag.attrib:
            aliases = frozenset(label.get("alias", "") for label in tag)
            name = tag.attrib.get("name", "")
            controls[name] = Control(tag.tag.lower(), tag.attrib["toName"], aliases)
    return controls


def is_untouched_config(config: str) -> bool:
    """Whether a config found on a server is word for word one that this program wrote."""
    mark = _MARK.search(config)
    return mark is not None and mark["mark"] == content_id(_MARK.sub("", config), length=10)


@lru_cache(maxsize=1)
def data_keys() -> frozenset[str]:
    """The keys of a task's data that the interface shows; the server refuses a task without one."""
    values = (tag.get("value", "") for tag in ET.fromstring(build_config()).iter())  # noqa: S314 - ours
    return frozenset(value[1:] for value in values if value.startswith("$"))


def build_config(variant: Variant = Variant.NEUTRAL) -> str:
    """The XML labelling config, the same for grounding and localization.

    The instruction is one line above all; what to read and press besides stands beside the picture:
    above it, it pushed the marked place of every second screen below the edge of a usual window.
    What only some verdicts need appears with them.

    Args:
        variant: whose Spanish the reviewers read; names and codes are the same in all.
    """
    words = WORDS[variant]
    view = ET.Element("View")
    _sub(view, "Style").text = _STYLE
    top = _sub(view, "View", className="pantalla-instruccion")
    _sub(top, "Header", value="$instruction", size="3")
    page = _sub(view, "View", className="pantalla-hoja")
    panel = _sub(page, "View", className="pantalla-panel")
    _add_question(panel)
    _add_verdict(panel, words)
    _add_labels(_when(panel, Verdict.CORRECTED, className="pantalla-etiquetas"))
    _add_text(_when(panel, Verdict.CORRECTED), words)
    _add_role(_when(panel, Verdict.CORRECTED))
    _add_instruction(_when(panel, Verdict.CORRECTED, Verdict.AMBIGUOUS), words)
    _add_candidates(_sub(view, "View", className="pantalla-oculto"))
    _add_image(_sub(page, "View", className="pantalla-imagen"))
    ET.indent(view)
    config = ET.tostring(view, encoding="unicode")
    mark = f' className="pantalla-{content_id(config, length=10)}"'
    return config.replace("<View", f"<View{mark}", 1)


def _sub(parent: ET.Element, tag: str, **attributes: str) -> ET.Element:
    return ET.SubElement(parent, tag, attributes)


def _when(parent: ET.Element, *verdicts: Verdict, **attributes: str) -> ET.Element:
    """A part that is only shown with one of these verdicts; conditions are told by alias."""
    return _sub(
        parent,
        "View",
        visibleWhen="choice-selected",
        whenTagName=VERDICT,
        whenChoiceValue=",".join(verdict.value for verdict in verdicts),
        **attributes,
    )


def _add_question(cell: ET.Element) -> None:
    _sub(cell, "Header", value="$question", size="5")
    _sub(cell, "Header", value="$answer", size="5")


def _add_verdict(cell: ET.Element, words: Mapping[str, str]) -> None:
    choices = _sub(
        cell,
        "Choices",
        name=VERDICT,
        toName=IMAGE,
        choice="single-radio",
        required="true",
        requiredMessage=f"{capitalized(words['elija'])} un veredicto antes de enviar.",
    )
    for verdict in Verdict:
        attributes = {"value": verdict.spanish, "alias": verdict.value, "hotkey": HOTKEYS[verdict]}
        _sub(choices, "Choice", **attributes)


def _add_role(cell: ET.Element) -> None:
    _sub(cell, "Header", value="Clase del elemento (opcional)", size="6")
    choices = _sub(cell, "Choices", name=ROLE, toName=IMAGE, choice="single", layout="select")
    for number, role in enumerate(Role, start=1):
        key = _UNPRESSED.format(number)
        _sub(choices, "Choice", value=role.spanish, alias=role.value, hotkey=key)


def _add_instruction(cell: ET.Element, words: Mapping[str, str]) -> None:
    _sub(cell, "Header", value="Instrucción corregida (opcional)", size="6")
    _text_area(cell, INSTRUCTION, words["escríbala"])


def _add_text(cell: ET.Element, words: Mapping[str, str]) -> None:
    """The text of one box, while that box is selected."""
    part = _sub(cell, "View", visibleWhen="region-selected", whenTagName=BOX)
    _sub(part, "Header", value="Texto del recuadro (opcional)", size="6")
    _text_area(part, TEXT, words["escríbalo"], perRegion="true")


def _text_area(cell: ET.Element, name: str, placeholder: str, **attributes: str) -> None:
    _sub(
        cell,
        "TextArea",
        name=name,
        toName=IMAGE,
        placeholder=placeholder,
        rows="1",
        maxSubmissions="1",
        editable="true",
        **attributes,
    )


def _add_labels(cell: ET.Element) -> None:
    points = _sub(cell, "KeyPointLabels", name=POINT, toName=IMAGE, strokeWidth="2", opacity="0.9")
    _label(points, CLICK_TEXT, CLICK, _CLICK_COLOR, hotkey="p")
    style = {"strokeWidth": "2", "opacity": "0", "canRotate": "false"}
    boxes = _sub(cell, "RectangleLabels", name=BOX, toName=IMAGE, **style)
    _label(boxes, "Elemento", ELEMENT, _ELEMENT_COLOR, hotkey="e")
    for role in Role:
        _label(boxes, role.spanish, role.value, _ROLE_COLORS[role])


def _add_candidates(cell: ET.Element) -> None:
    """Controls that nobody can press: their regions are shown, not reviewed."""
    key = len(Role)
    points = _sub(cell, "KeyPointLabels", name=CANDIDATE, toName=IMAGE, opacity="0.6")
    _label(points, CANDIDATE_TEXT, CANDIDATE, _CANDIDATE_COLOR, hotkey=_UNPRESSED.format(key + 1))
    style = {"strokeWidth": "1", "opacity": "0", "canRotate": "false"}
    boxes = _sub(cell, "RectangleLabels", name=CANDIDATE_BOX, toName=IMAGE, **style)
    _label(boxes, CANDIDATE_TEXT, CANDIDATE, _CANDIDATE_COLOR, hotkey=_UNPRESSED.format(key + 2))


def _add_image(cell: ET.Element) -> None:
    _sub(
        cell,
        "Image",
        name=IMAGE,
        value="$image",
        zoom="true",
        zoomControl="true",
        rotateControl="false",
        crosshair="true",
        defaultZoom="fit",
    )


def _label(parent: ET.Element, text: str, alias: str, color: str, hotkey: str = "") -> None:
    attributes = {"value": text, "alias": alias, "background": color}
    if hotkey:
        attributes["hotkey"] = hotkey
    _sub(parent, "Label", **attributes)
