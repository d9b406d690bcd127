"""The labelling interface: one XML config for both kinds of query, generated from the codes.

Names of controls are machine codes that `pull` reads; texts are Spanish. Predictions and results
carry the `alias` of a label, never its text.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from xml.etree import ElementTree as ET

from schemas.codes import Role, Verdict

IMAGE = "image"
BOX = "box"
POINT = "point"
VERDICT = "verdict"
ROLE = "role"
INSTRUCTION = "instruction_fix"

ELEMENT = "element"
"""Alias of a box whose class nobody has said yet."""
CLICK = "click"
"""Alias of the click point: the model's, or the reviewer's."""
CANDIDATE = "candidate"
"""Alias of a place that another of the k answers gave: shown, not part of the review."""

CLICK_TEXT = "Punto de clic"
"""Spanish text of the click point's label."""

POINT_WIDTH = 0.6
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
_STYLE = """
.pantalla-cabeza { display: flex; flex-wrap: wrap; gap: 4px 28px; align-items: flex-start; }
.pantalla-cabeza h2, .pantalla-cabeza h4 { margin: 0 0 4px !important; }
.pantalla-cabeza h4 { font-size: 14px; font-weight: 400; line-height: 1.35; }
.pantalla-pregunta { flex: 1 1 320px; }
.pantalla-pregunta h2 { font-size: 22px; line-height: 1.25; }
.pantalla-veredicto .lsf-choices { margin: 0; }
.pantalla-detalles { flex: 0 0 230px; }
.pantalla-detalles .lsf-choices { margin: 0 0 6px; }
.pantalla-detalles .lsf-text-area { margin: 0 !important; }
.pantalla-etiquetas { display: flex; flex-wrap: wrap; margin: 4px 0; }
.pantalla-etiquetas .lsf-labels { display: contents; }
.pantalla-etiquetas .lsf-label { margin: 0 6px 6px 0; font-size: 13px; }
.pantalla-oculto { display: none; }
.konvajs-content canvas { filter: drop-shadow(0 0 1px #fff) drop-shadow(0 0 1px #000); }
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
    controls = {}
    for tag in ET.fromstring(build_config()).iter():  # noqa: S314 - our own text
        if "toName" in tag.attrib:
            aliases = frozenset(label.get("alias", "") for label in tag)
            controls[tag.attrib["name"]] = Control(tag.tag.lower(), tag.attrib["toName"], aliases)
    return controls


@lru_cache(maxsize=1)
def data_keys() -> frozenset[str]:
    """The keys of a task's data that the interface shows; the server refuses a task without one."""
    values = (tag.get("value", "") for tag in ET.fromstring(build_config()).iter())  # noqa: S314 - ours
    return frozenset(value[1:] for value in values if value.startswith("$"))


def build_config() -> str:
    """The XML labelling config, the same for grounding and localization."""
    view = ET.Element("View")
    _sub(view, "Style").text = _STYLE
    head = _sub(view, "View", className="pantalla-cabeza")
    _add_question(_sub(head, "View", className="pantalla-pregunta"))
    _add_verdict(_sub(head, "View", className="pantalla-veredicto"))
    _add_details(_sub(head, "View", className="pantalla-detalles"))
    _add_labels(_sub(view, "View", className="pantalla-etiquetas"))
    _add_candidates(_sub(view, "View", className="pantalla-oculto"))
    _add_image(_sub(view, "View", className="pantalla-imagen"))
    ET.indent(view)
    return ET.tostring(view, encoding="unicode")


def _sub(parent: ET.Element, tag: str, **attributes: str) -> ET.Element:
    return ET.SubElement(parent, tag, attributes)


def _add_question(cell: ET.Element) -> None:
    _sub(cell, "Header", value="$question", size="5")
    _sub(cell, "Header", value="$instruction", size="3")
    _sub(cell, "Header", value="$answer", size="5")


def _add_verdict(cell: ET.Element) -> None:
    choices = _sub(
        cell,
        "Choices",
        name=VERDICT,
        toName=IMAGE,
        choice="single-radio",
        required="true",
        requiredMessage="Elija un veredicto antes de enviar.",
    )
    for verdict in Verdict:
        attributes = {"value": verdict.spanish, "alias": verdict.value, "hotkey": HOTKEYS[verdict]}
        _sub(choices, "Choice", **attributes)


def _add_details(cell: ET.Element) -> None:
    _sub(cell, "Header", value="Clase del elemento (opcional)", size="6")
    choices = _sub(cell, "Choices", name=ROLE, toName=IMAGE, choice="single", layout="select")
    for role in Role:
        _sub(choices, "Choice", value=role.spanish, alias=role.value)
    _sub(cell, "Header", value="Instrucción corregida (opcional)", size="6")
    _sub(
        cell,
        "TextArea",
        name=INSTRUCTION,
        toName=IMAGE,
        placeholder="Escríbala aquí",
        rows="1",
        maxSubmissions="1",
        editable="true",
    )


def _add_labels(cell: ET.Element) -> None:
    points = _sub(cell, "KeyPointLabels", name=POINT, toName=IMAGE, strokeWidth="2", opacity="0.9")
    _label(points, CLICK_TEXT, CLICK, _CLICK_COLOR, hotkey="p")
    style = {"strokeWidth": "3", "opacity": "0", "canRotate": "false"}
    boxes = _sub(cell, "RectangleLabels", name=BOX, toName=IMAGE, **style)
    _label(boxes, "Elemento", ELEMENT, _ELEMENT_COLOR, hotkey="e")
    for role in Role:
        _label(boxes, role.spanish, role.value, _ROLE_COLORS[role])


def _add_candidates(cell: ET.Element) -> None:
    """A control that nobody can press: its points are shown, not reviewed."""
    points = _sub(cell, "KeyPointLabels", name=CANDIDATE, toName=IMAGE, opacity="0.6")
    _label(points, "Otra respuesta del modelo", CANDIDATE, _CANDIDATE_COLOR)


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
