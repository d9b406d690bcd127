"""The nano tokenizer: byte-level BPE over a few lines of interface Spanish, digits kept single.

Byte-level means that every text has tokens; the corpus only decides which texts are short. Digits
stay single so that a coordinate is always spelled digit by digit, as the Qwen family does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.nano.architecture import MAX_POSITIONS, VOCAB_SIZE, ConfigFile

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SPECIAL_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|object_ref_start|>",
    "<|object_ref_end|>",
    "<|box_start|>",
    "<|box_end|>",
    "<|quad_start|>",
    "<|quad_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
"""The Qwen names that the processor and the chat template look for."""

CORPUS = (
    '[{"bbox_2d":[1,2,3,4],"label":"button"}]',
    '[{"bbox_2d":[1,2,3,4],"label":"link"},{"bbox_2d":[5,6,7,8],"label":"textbox"}]',
    '[{"bbox_2d":[9,0,1,2],"label":"checkbox"},{"bbox_2d":[3,4,5,6],"label":"radio"}]',
    '[{"bbox_2d":[7,8,9,0],"label":"combobox"},{"bbox_2d":[1,2,3,4],"label":"menuitem"}]',
    '[{"bbox_2d":[5,6,7,8],"label":"tab"},{"bbox_2d":[9,0,1,2],"label":"switch"}]',
    '[{"bbox_2d":[3,4,5,6],"label":"img"},{"bbox_2d":[7,8,9,0],"label":"heading"}]',
    '[{"bbox_2d":[1,2,3,4],"label":"cell"},{"bbox_2d":[5,6,7,8],"label":"option"}]',
    '[{"bbox_2d":[9,0,1,2],"label":"slider"},{"bbox_2d":[3,4,5,6],"label":"other"}]',
    "¿Dónde está el elemento? Responda con su caja en JSON, de 0 a 1000; [] si no está.",
    "¿Qué elementos hay en la pantalla? Responda con sus cajas en JSON, de 0 a 1000.",
    "Abra el menú de la cuenta. Abra la configuración del sitio. Abra la ayuda en línea.",
    "Haga clic en el botón Guardar. Haga clic en el botón Cancelar. Haga clic en Aceptar.",
    "Pulse el enlace Iniciar sesión. Pulse el enlace Cerrar sesión. Pulse Registrarse.",
    "Escriba el nombre de usuario y la contraseña. ¿Ha olvidado la contraseña?",
    "Escriba el correo electrónico, el teléfono y la dirección. Añada una descripción.",
    "Busque un artículo por su título. Buscar páginas, buscar imágenes, buscar usuarios.",
    "Marque la casilla Recordarme. Marque todas las casillas de la lista de mensajes.",
    "Elija el idioma español. Elija la fecha de inicio y la fecha de fin. Elija el año.",
    "Cambie a la pestaña Historial. Cambie a la pestaña Opciones. Cambie el tamaño.",
    "Edite la página actual. Elimine la última entrada. Actualice la publicación.",
    "Publique el artículo. Suba una imagen nueva. Descargue el archivo. Imprima el libro.",
    "Vaya a la página siguiente. Vuelva a la página anterior. Vuelva al inicio.",
    "Añada el producto al carrito de compras. Muestre el precio y la cantidad del pedido.",
    "Ordene la tabla por la columna Nombre. Ordene los libros por autor y por categoría.",
    "el icono de la lupa, el icono de la campana, el icono de la papelera, el logotipo",
    "Abrí el menú. Hacé clic en Guardar. Escribí tu contraseña. Buscá el pedido. Elegí.",
    "Abre el menú. Haz clic en Guardar. Escribe tu contraseña. Busca el pedido. Elige.",
    "Nuevo Archivo Editar Ver Ayuda Perfil Usuarios Grupos Permisos Páginas Comentarios",
    "Acción Autenticación Administración Configuración Sección Sesión Versión Información",
)
"""Texts the merges are learnt from: the answer form, and instructions as they are written."""

PATTERN = r"\p{N}| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+"
"""Pre-tokens: one digit, a word, a run of signs, a run of blanks."""

CHAT_TEMPLATE = """\
{%- for message in messages -%}
<|im_start|>{{ message['role'] }}
{% if message['content'] is string -%}
{{ message['content'] }}
{%- else -%}
{%- for part in message['content'] -%}
{%- if 'image' in part or part['type'] in ('image', 'image_url') -%}
<|vision_start|><|image_pad|><|vision_end|>
{%- elif part['type'] == 'video' -%}
<|vision_start|><|video_pad|><|vision_end|>
{%- elif 'text' in part -%}
{{ part['text'] }}
{%- endif -%}
{%- endfor -%}
{%- endif -%}
<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}
<|im_start|>assistant
{% endif -%}
"""
"""ChatML, as the Qwen family speaks it; images stand where they are in the message."""


def build_tokenizer() -> Tokenizer:
    """Learn the tokenizer from `CORPUS`: the same one every time."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PATTERN), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def tokenizer_config() -> ConfigFile:
    """The content of `tokenizer_config.json`."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "processor_class": "Qwen3VLProcessor",
        "model_max_length": MAX_POSITIONS,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "clean_up_tokenization_spaces": False,
        "chat_template": CHAT_TEMPLATE,
    }
