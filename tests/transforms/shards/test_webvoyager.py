"""Result folders of WebVoyager agents, and `shard.toml` beside shards of any kind."""

import base64
import json
from pathlib import Path

import pytest
from shard_fixtures import only_shard, png, problems, screens, tar_bytes, units_of, write

from schemas.codes import RejectReason
from schemas.errors import InputError
from schemas.records import ShardKind
from transforms.shards import RawScreen, index_shard, list_shards, read_unit
from transforms.sidecar import parse_sidecar
from transforms.storage.local import LocalStorage

A, B, C = png(16, 12), png(20, 12), png(24, 12)
TASK = 'Buscá «Año "nuevo"»\ny decime el precio.'


def messages(task: str, images: int, image: str = "{b64_img}") -> bytes:
    """As the agent's own code writes them: a system message, then screenshots and actions."""
    first = f"Now given a task: {task}  Please interact with https://tienda.example/ and get "
    talk: list[dict] = [{"role": "system", "content": 'Action: "Click [1]". Now you are a robot'}]
    for number in range(images):
        text = first + "the answer. \nObservation: please" if number == 0 else "Observation:"
        url = f"data:image/png;base64,{image}"
        parts = [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": url}}]
        talk.append({"role": "user", "content": parts})
        talk.append({"role": "assistant", "content": "Thought: ñ\nAction: Click [3]"})
    return json.dumps(talk, indent=2).encode()


@pytest.fixture
def results(tmp_path: Path) -> Path:
    root = tmp_path / "results/20240321"
    for task, count in (("taskTienda--3", 2), ("taskMapa--11", 1)):
        for number in range(1, count + 1):
            write(root / task / f"screenshot{number}.png", png(16 + number, 12))
        write(root / task / "interact_messages.json", messages(f"{TASK} {task}", count))
        write(root / task / "agent.log", b"INFO")
    return root


def test_screens_say_task_step_app_and_site_and_ask_nothing(results: Path) -> None:
    shard = only_shard(str(results))
    assert (shard.kind, problems(str(results))) == (ShardKind.WEBVOYAGER, [])
    told = []
    for screen in screens(str(results)):
        known = parse_sidecar(screen.sidecar)
        assert known.queries == ()
        origin = known.provenance
        told.append((screen.member.name, origin.app, origin.task, origin.step, origin.source))
    site = "https://tienda.example/"
    assert told == [
        ("taskMapa--11/screenshot1.png", "Mapa", f"{TASK} taskMapa--11", 1, site),
        ("taskTienda--3/screenshot1.png", "Tienda", f"{TASK} taskTienda--3", 1, site),
        ("taskTienda--3/screenshot2.png", "Tienda", f"{TASK} taskTienda--3", 2, site),
    ]


def test_of_messages_full_of_images_only_the_head_is_read(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    big = messages(TASK, 4, base64.b64encode(bytes(3 * 2**20)).decode())
    write(results / "taskTienda--3/interact_messages.json", big)
    taken: list[int] = []
    original = LocalStorage.read_range

    def counting(self: LocalStorage, uri: str, offset: int, size: int, version: str = "") -> bytes:
        taken.append(size)
        return original(self, uri, offset, size, version)

    monkeypatch.setattr(LocalStorage, "read_range", counting)
    (unit,) = units_of(str(results))
    steps = [
        parse_sidecar(item.sidecar).provenance.task
        for item in read_unit(unit)
        if isinstance(item, RawScreen)
    ]
    assert steps[1:] == [TASK, TASK]
    assert len(big) > 12 * 2**20
    assert sum(taken) <= 2**20 + 10_000


@pytest.mark.parametrize("data", [b"", b"{no es json", b"[]", b'[{"role": "user"}]'])
def test_messages_that_say_nothing_leave_the_screens(results: Path, data: bytes) -> None:
    write(results / "taskTienda--3/interact_messages.json", data)
    known = [parse_sidecar(s.sidecar).provenance for s in screens(str(results))]
    assert [(p.app, p.step, p.task is None) for p in known] == [
        ("Mapa", 1, False),
        ("Tienda", 1, True),
        ("Tienda", 2, True),
    ]


def test_messages_without_a_screenshot_are_orphans_and_other_files_are_told(results: Path) -> None:
    write(results / "taskVacia--1/interact_messages.json", messages("x", 0))
    write(results / "taskMapa--11/menu.pdf", b"%PDF")
    assert problems(str(results)) == [
        ("taskMapa--11/menu.pdf", RejectReason.MEMBER_UNSUPPORTED),
        ("taskVacia--1/interact_messages.json", RejectReason.SIDECAR_ORPHAN),
    ]


TOML = 'licence = "CC-BY-4.0"\nsource = "Taller 2024"\nlocale = "es-MX"\nconsent = true\n'


def test_defaults_beside_a_shard_hold_for_its_screens(tmp_path: Path) -> None:
    write(tmp_path / "shard.toml", TOML.encode())
    write(tmp_path / "a.tar", tar_bytes([("a.png", A), ("shard.toml", b"app = 'nadie'")]))
    for pattern in (f"{tmp_path}", f"{tmp_path}/a.tar", f"{tmp_path}/*.tar"):
        (shard,) = list_shards([pattern])
        assert index_shard(shard).problems == ()
        (screen,) = screens(pattern)
        assert dict(screen.defaults) == {
            "licence": "CC-BY-4.0",
            "locale": "es-MX",
            "source": "Taller 2024",
        }


def test_in_a_folder_the_deepest_word_wins(tmp_path: Path) -> None:
    root = tmp_path / "f"
    for name in ("a.png", "es/b.png", "es/ar/c.png"):
        write(root / name, A)
    write(root / "shard.toml", TOML.encode())
    write(root / "es/shard.toml", b'locale = "es-ES"\napp = "Portal"\n')
    assert problems(str(root)) == []
    told = {s.member.name: dict(s.defaults) for s in screens(str(root))}
    assert [told[n].get("locale") for n in ("a.png", "es/b.png", "es/ar/c.png")] == [
        "es-MX",
        "es-ES",
        "es-ES",
    ]
    assert told["es/ar/c.png"]["licence"] == "CC-BY-4.0"
    assert "app" not in told["a.png"]


@pytest.mark.parametrize("text", ["licence = ", "licence = 3\n", "locale = ['es']\n"])
def test_a_wrong_toml_stops_before_anything_runs(tmp_path: Path, text: str) -> None:
    write(tmp_path / "a.tar", tar_bytes([("a.png", A)]))
    write(tmp_path / "shard.toml", text.encode())
    with pytest.raises(InputError, match=r"shard\.toml"):
        list_shards([str(tmp_path)])


def test_other_defaults_make_other_units(tmp_path: Path) -> None:
    write(tmp_path / "a.tar", tar_bytes([("a.png", A)]))
    ids = set()
    for text in (b"", b'licence = "MIT"', b'licence = "GPL-3.0-only"', b"[otra]\nx = 1"):
        write(tmp_path / "shard.toml", text)
        ids |= {unit.unit_id for unit in units_of(str(tmp_path / "a.tar"))}
    assert len(ids) == 3
