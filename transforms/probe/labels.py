"""Spanish button labels, and a way to draw them with the font that Pillow carries.

That font (Aileron, a subset) has no accented letters. The machine's own fonts differ from one to
the next, and a probe must draw the same pixels everywhere, so accents are drawn on the letters.
"""

from __future__ import annotations

import unicodedata

from PIL import ImageDraw, ImageFont

LABELS = (
    "Guardar", "Cancelar", "Búsqueda", "Contraseña", "Año nuevo", "Imprimir", "Descargar",
    "Configuración", "Cerrar", "Añadir", "Último pago", "Página", "Enviar", "Archivo", "Editar",
    "Señal", "Diseño", "Compañeros", "Teléfono", "Número", "Correo", "Código", "Facturas",
    "Próximo", "Anterior", "Mañana", "Pequeño", "Compras", "Ubicación", "Entregas", "Préstamos",
    "Rápido", "Baño", "Reseñas", "Cámara", "Música", "Estación", "Cuentas", "Tamaño", "Otoño",
    "Ayuda", "Perfil", "Salir", "Volver", "Copiar", "Pegar", "Borrar", "Recargar", "Compartir",
    "Exportar", "Importar", "Filtros", "Ordenar", "Favoritos", "Mensajes", "Alertas", "Eventos",
    "Clientes", "Productos", "Proveedores", "Informes", "Ventas", "Pedidos", "Tareas",
)  # fmt: skip
"""Different from each other, so that a label names one target of a whole probe."""

Ink = tuple[int, int, int]

_ACUTE, _TILDE = "\u0301", "\u0303"


def label_font(size: int) -> ImageFont.FreeTypeFont:
    """The font that Pillow carries, `size` pixels high."""
    font = ImageFont.load_default(size)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise TypeError("this Pillow has no FreeType: labels cannot be drawn at a given size")
    return font


def label_width(text: str, font: ImageFont.FreeTypeFont) -> float:
    """Width of a label in pixels; accents take none."""
    return font.getlength(_plain(text))


def draw_label(
    draw: ImageDraw.ImageDraw,
    at: tuple[float, float],
    text: str,
    font: ImageFont.FreeTypeFont,
    ink: Ink,
) -> None:
    """Write `text` with its middle left at `at`, in pixels of the drawing."""
    x, y = at
    draw.text((x, y), _plain(text), fill=ink, font=font, anchor="lm")
    base = ""
    for letter in text:
        parts = list(unicodedata.normalize("NFD", letter))
        plain, marks = parts[0], parts[1:]
        left = x + font.getlength(base)
        base += plain
        for mark in marks:
            middle = (left + x + font.getlength(base)) / 2
            _mark(draw, mark, (middle, _top(y, plain, font)), font.size, ink)


def _plain(text: str) -> str:
    return "".join(
        letter for letter in unicodedata.normalize("NFD", text) if not unicodedata.combining(letter)
    )


def _top(y: float, letter: str, font: ImageFont.FreeTypeFont) -> float:
    """Where the ink of a letter begins, when the line's middle is at `y`."""
    return y + font.getbbox(letter, anchor="lm")[1]


def _mark(
    draw: ImageDraw.ImageDraw, mark: str, at: tuple[float, float], size: float, ink: Ink
) -> None:
    """An acute accent or a tilde above the point `at`."""
    x, y = at
    reach, lift, pen = size * 0.13, size * 0.07, max(1, round(size / 14))
    if mark == _ACUTE:
        draw.line((x - reach / 2, y - lift, x + reach, y - lift - 1.3 * reach), ink, pen)
    elif mark == _TILDE:
        low, high = y - lift, y - lift - reach * 0.8
        draw.line((x - 1.5 * reach, low, x - reach / 2, high, x + reach / 2, low), ink, pen)
        draw.line((x + reach / 2, low, x + 1.5 * reach, high), ink, pen)
