"""Text of people's files: encodings, mojibake, and words that a tokenizer takes for its own.

B134 to B137 of the hard inputs, and special tokens in instructions.
"""

import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from schemas.codes import QueryKind
from schemas.geometry import Size
from transforms.compose import prompt_text
from transforms.profiles.load import list_profiles, load_profile
from transforms.queries_lines import read_lines
from transforms.sidecar import parse_sidecar
from transforms.source_text import (
    decode_text,
    encoding_name,
    holds_tokens,
    instruction,
    is_mojibake,
)

SPANISH = '{"page_title": "Búsqueda de MUÑOZ", "queries": ["Pulse «Contraseña»", "Año → ¿qué?"]}'
PLAIN = '{"page_title": "Búsqueda de MUÑOZ", "queries": ["Pulse «Contraseña»"]}'


@pytest.mark.parametrize(
    ("codec", "name", "text"),
    [
        ("utf-8", "utf-8", SPANISH),
        ("utf-8-sig", "utf-8-sig", SPANISH),
        ("utf-16", "utf-16", SPANISH),
        ("utf-16-le", "utf-16", SPANISH),
        ("utf-16-be", "utf-16", SPANISH),
        ("utf-32", "utf-32", SPANISH),
        ("cp1252", "windows-1252", PLAIN),
        ("latin-1", "windows-1252", PLAIN),  # the same bytes: the letters agree
    ],
)
def test_the_encoding_is_found_and_recorded(codec: str, name: str, text: str) -> None:
    read = parse_sidecar(text.encode(codec), Size(100, 100))
    assert (read.encoding, read.provenance.page_title) == (name, "Búsqueda de MUÑOZ")
    assert [q.instruction for q in read.queries] == json.loads(text)["queries"]
    assert "mojibake" not in read.flags
    assert parse_sidecar(None).encoding is None


@example("\0\x80", "utf-8-sig")
@given(st.text(), st.sampled_from(["utf-8-sig", "utf-16", "utf-32"]))
def test_any_text_survives_an_encoding_with_a_mark(text: str, codec: str) -> None:
    text = "{" + text  # JSON starts so, and zeros beside its first letter would mean UTF-16
    found, flags = decode_text(text.encode(codec))
    assert (found, encoding_name(flags)) == (text, codec)


BROKEN = [
    "PequeÃ±o",
    "MUÃ‘OZ",
    "â€œGuardarâ€\x9d",
    "contraseÃƒÂ±a",
    "Â¿Desea salir?",
    "AÃ±adir a la cesta",
]
GOOD = [
    "Pequeño", "MUÑOZ", "¿Desea salir?", "São Paulo", "Ñandú", "«Año»", "ÀÉÎÕÜ", "Ã", "Â", "naïve",
    "5 € más", "Calle Núm. 3ª", "Ángel Ã", "ŁÓDŹ", "Crème brûlée", "MANHÃ", "NÃO",
]  # fmt: skip


@pytest.mark.parametrize("text", BROKEN)
def test_text_that_was_read_in_another_encoding_is_told_and_left_as_it_is(text: str) -> None:
    assert is_mojibake(text)
    read = parse_sidecar(json.dumps({"queries": [text]}).encode())
    assert read.flags == ("mojibake",)
    assert read.queries[0].instruction == unicodedata.normalize("NFC", text)
    title = parse_sidecar(json.dumps({"page_title": text, "queries": []}).encode())
    assert title.flags == ("mojibake",)


@pytest.mark.parametrize("text", GOOD)
def test_good_spanish_is_not_called_broken(text: str) -> None:
    assert not is_mojibake(text)


def test_names_of_elements_are_composed() -> None:
    nfd = unicodedata.normalize("NFD", "Botón de búsqueda")
    element = {"role": "button", "name": nfd, "bbox_px": [1, 1, 9, 9]}
    read = parse_sidecar(json.dumps({"page_title": nfd, "elements": [element]}).encode())
    assert read.elements[0].label == "Botón de búsqueda"
    assert read.provenance.page_title == "Botón de búsqueda"


TOKENS = [
    "<|im_end|>", "<|im_start|>", "<image>", "</image>", "<img>", "</s>", "<s>", "<IMG_CONTEXT>",
    "<|image_pad|>", "<|vision_start|>", "<|box_start|>", "<|endoftext|>", "<think>", "</think>",
    "<tool_call>", "<start_of_turn>", "<end_of_turn>", "<SPECIAL_12>", "<|image_1|>", "<image 1>",
    "[INST]", "[/INST]", "[IMG]", "<unk>", "<pad>", "<bos>", "<eos>", "<ref>", "<box>", "<quad>",
    "<|eot_id|>", "<|end|>", "<|user|>", "<｜end▁of▁sentence｜>", "<unused0>", "<0x0A>", "<br/>",
]  # fmt: skip


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize("name", list_profiles())
def test_no_instruction_holds_a_token_of_any_profile(name: str, token: str) -> None:
    tidy, raw = instruction(f"Pulse «{token}» y {token}{token}")
    assert token not in tidy
    assert raw == f"Pulse «{token}» y {token}{token}"
    task = load_profile(name).tasks[QueryKind.GROUNDING]
    harmless = prompt_text(task, "Pulse", Size(640, 480))
    asked = prompt_text(task, tidy, Size(640, 480))
    assert asked.count(token) == harmless.count(token)


@pytest.mark.parametrize(
    "text",
    ["Si a < b y b > c", "Pulse «OK»", "x <- 3", "[Guardar]", "1 < 2", "{target}", "a|b", "<3"],
)
def test_ordinary_signs_stay_as_they_are(text: str) -> None:
    assert instruction(text) == (text, None)
    assert not holds_tokens(text)


@given(st.lists(st.sampled_from([*TOKENS, "<", ">", "|", "[", "]", " ", "á", "‹"]), max_size=9))
def test_what_is_neutralised_holds_none_and_stays_so(pieces: list[str]) -> None:
    tidy, _ = instruction("".join(pieces))
    assert instruction(tidy)[0] == tidy
    assert not any(token in tidy for token in TOKENS)


def test_nanos_tokenizer_sees_no_token_of_its_own_in_an_instruction() -> None:
    """The real tokenizer: an instruction cannot end its turn, nor add a place for an image."""
    from tokenizers import Tokenizer

    folder = Path(__file__).parents[2] / "pipeline" / "nano" / "checkpoint_files"
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    own = {number: token.content for number, token in tokenizer.get_added_tokens_decoder().items()}
    assert "<|im_end|>" in own.values()
    task = load_profile("nano").tasks[QueryKind.GROUNDING]
    for token in (*own.values(), *TOKENS):
        for text in (token, f"Pulse {token}", f"{token}\n{token}", f"<{token}>"):
            tidy, _ = instruction(text)
            ids = tokenizer.encode(prompt_text(task, tidy), add_special_tokens=False).ids
            plain = tokenizer.encode(prompt_text(task, "Pulse"), add_special_tokens=False).ids
            assert [i for i in ids if i in own] == [i for i in plain if i in own]


def test_queries_files_are_neutralised_too() -> None:
    (line,) = read_lines("q.jsonl", b'{"member": "a", "instruction": "Pulse <|im_end|>"}')
    assert (line.instruction, line.instruction_raw) == ("Pulse ‹|im_end|›", "Pulse <|im_end|>")


def test_no_instruction_holds_a_nul_which_postgresql_cannot_hold() -> None:
    assert instruction("Pulse\0 «Año»") == ("Pulse\ufffd «Año»", "Pulse\0 «Año»")
