"""The words of the interface and the guide that change with the region: who is addressed, and how.

Neutral Spanish says `usted`; es-AR speaks with voseo, es-ES with tú; es-MX keeps usted with its own
words for things. Everything else is said so that it is right everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class Variant(StrEnum):
    """Whose Spanish the reviewers read."""

    NEUTRAL = "es"
    ARGENTINA = "es-AR"
    MEXICO = "es-MX"
    SPAIN = "es-ES"


_USTED = {
    "usted_dice": "Usted dice",
    "añadir": "Añadir",
    "le_pide": "le pide",
    "arrastre": "arrastre",
    "arrástrelo": "arrástrelo",
    "borre": "borre",
    "bórrelo": "bórrelo",
    "corrija": "corrija",
    "dibuje": "dibuje",
    "elija": "elija",
    "escriba": "escriba",
    "escríbala": "Escríbala aquí",
    "escríbalo": "Escríbalo aquí",
    "escribió": "escribió",
    "gire": "gire",
    "haga_clic": "haga clic",
    "lea": "Lea",
    "márquelo": "Márquelo.",
    "márquelos": "Márquelos",
    "mire": "Mire",
    "muévalo": "muévalo",
    "mueva": "mueva",
    "presione": "presione",
    "puede": "puede",
    "revise": "revise",
    "selecciónelo": "selecciónelo",
    "ratón": "ratón",
    "tecla_intro": "Intro",
}
_VOS = {
    "usted_dice": "Vos decís",
    "añadir": "Agregar",
    "le_pide": "te pide",
    "arrastre": "arrastrá",
    "arrástrelo": "arrastralo",
    "borre": "borrá",
    "bórrelo": "borralo",
    "corrija": "corregí",
    "dibuje": "dibujá",
    "elija": "elegí",
    "escriba": "escribí",
    "escríbala": "Escribila acá",
    "escríbalo": "Escribilo acá",
    "escribió": "escribiste",
    "gire": "girá",
    "haga_clic": "hacé clic",
    "lea": "Leé",
    "márquelo": "Marcalo.",
    "márquelos": "Marcalos",
    "mire": "Mirá",
    "muévalo": "movelo",
    "mueva": "mové",
    "presione": "apretá",
    "puede": "podés",
    "revise": "revises",
    "selecciónelo": "seleccionalo",
    "ratón": "mouse",
    "tecla_intro": "Enter",
}
_TU = {
    "usted_dice": "Tú dices",
    "añadir": "Añadir",
    "le_pide": "te pide",
    "arrastre": "arrastra",
    "arrástrelo": "arrástralo",
    "borre": "borra",
    "bórrelo": "bórralo",
    "corrija": "corrige",
    "dibuje": "dibuja",
    "elija": "elige",
    "escriba": "escribe",
    "escríbala": "Escríbela aquí",
    "escríbalo": "Escríbelo aquí",
    "escribió": "has escrito",
    "gire": "gira",
    "haga_clic": "haz clic",
    "lea": "Lee",
    "márquelo": "Márcalo.",
    "márquelos": "Márcalos",
    "mire": "Mira",
    "muévalo": "muévelo",
    "mueva": "mueve",
    "presione": "pulsa",
    "puede": "puedes",
    "revise": "revises",
    "selecciónelo": "selecciónalo",
    "ratón": "ratón",
    "tecla_intro": "Intro",
}
WORDS: Mapping[Variant, Mapping[str, str]] = MappingProxyType(
    {
        Variant.NEUTRAL: _USTED,
        Variant.ARGENTINA: _VOS,
        Variant.MEXICO: {
            **_USTED,
            "añadir": "Agregar",
            "ratón": "mouse",
            "tecla_intro": "Enter",
        },
        Variant.SPAIN: _TU,
    }
)
"""For every variant the same keys, each named by what neutral Spanish says."""


def capitalized(text: str) -> str:
    """The text with its first letter as a capital and the rest as it is."""
    return text[:1].upper() + text[1:]
