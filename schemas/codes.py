"""Machine codes: language-neutral, lower case, stored as they are in Parquet and Label Studio.

Codes that a reviewer sees carry their Spanish text here, beside the code, so that the Label
Studio interface is generated from this list and no second one has to be kept in step.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class QueryKind(StrEnum):
    """What is asked about a screen."""

    GROUNDING = "grounding"
    LOCALIZATION = "localization"


class QueryOrigin(StrEnum):
    """Where a query came from."""

    SIDECAR = "sidecar"
    QUERIES_FILE = "queries_file"
    ENUMERATE = "enumerate"


class SampleStatus(StrEnum):
    """What became of a model's answer to one query."""

    OK = "ok"
    ABSENT = "absent"
    NO_ANSWER = "no_answer"
    TRUNCATED = "truncated"
    UNPARSEABLE = "unparseable"
    OUT_OF_FRAME = "out_of_frame"
    DEGENERATE = "degenerate"


class Route(StrEnum):
    """Where a row goes next: `audit` is accepted, but drawn at random for review."""

    ACCEPT = "accept"
    REVIEW = "review"
    AUDIT = "audit"
    REJECT = "reject"


class Stage(StrEnum):
    """The stage at which an item was rejected."""

    PLAN = "plan"
    READ = "read"
    DECODE = "decode"
    COMPOSE = "compose"
    INFER = "infer"


class RejectReason(StrEnum):
    """Why an item became a row of `rejects`."""

    SHARD_UNREADABLE = "shard_unreadable"
    SHARD_TRUNCATED = "shard_truncated"
    SHARD_EMPTY = "shard_empty"
    SHARD_CHANGED = "shard_changed"
    MEMBER_DUPLICATE = "member_duplicate"
    MEMBER_UNSUPPORTED = "member_unsupported"
    MEMBER_UNREADABLE = "member_unreadable"
    SIDECAR_ORPHAN = "sidecar_orphan"
    SIDECAR_INVALID = "sidecar_invalid"
    IMAGE_EMPTY = "image_empty"
    IMAGE_TRUNCATED = "image_truncated"
    IMAGE_UNSUPPORTED = "image_unsupported"
    IMAGE_CORRUPT = "image_corrupt"
    IMAGE_TOO_LARGE = "image_too_large"
    IMAGE_TOO_SMALL = "image_too_small"
    IMAGE_TOO_NARROW = "image_too_narrow"
    NEAR_DUPLICATE = "near_duplicate"
    QUERY_INVALID = "query_invalid"
    QUERY_UNMATCHED = "query_unmatched"
    SAMPLE_DUPLICATE = "sample_duplicate"
    PROMPT_TOO_LONG = "prompt_too_long"
    REQUEST_REFUSED = "request_refused"
    REQUEST_TIMEOUT = "request_timeout"
    ENGINE_FAILED = "engine_failed"
    ENGINE_KILLER = "engine_killer"


class _SpanishCode(StrEnum):
    """A code with the Spanish text a reviewer reads."""

    spanish: str

    def __new__(cls, code: str, spanish: str) -> Self:
        member = str.__new__(cls, code)
        member._value_ = code
        member.spanish = spanish
        return member


class Role(_SpanishCode):
    """The class of an interface element, with its Spanish name."""

    BUTTON = "button", "Botón"
    LINK = "link", "Enlace"
    TEXTBOX = "textbox", "Campo de texto"
    CHECKBOX = "checkbox", "Casilla de verificación"
    RADIO = "radio", "Botón de opción"
    COMBOBOX = "combobox", "Lista desplegable"
    MENUITEM = "menuitem", "Elemento de menú"
    TAB = "tab", "Pestaña"
    SWITCH = "switch", "Interruptor"
    IMG = "img", "Icono o imagen"
    HEADING = "heading", "Encabezado"
    CELL = "cell", "Celda de tabla"
    OPTION = "option", "Opción de una lista"
    SLIDER = "slider", "Control deslizante"
    OTHER = "other", "Otro"


class Verdict(_SpanishCode):
    """What a reviewer says of a sample, with the Spanish text of the choice."""

    CORRECT = "correct", "Correcta"
    CORRECTED = "corrected", "Corregida"
    ABSENT = "absent", "No existe en la pantalla"
    AMBIGUOUS = "ambiguous", "Instrucción ambigua"
    ILLEGIBLE = "illegible", "Ilegible"
    PERSONAL_DATA = "personal_data", "Contiene datos personales"
