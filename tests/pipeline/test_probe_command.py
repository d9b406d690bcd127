"""`pantalla probe`: what it prints, writes and returns, with models that follow each convention."""

import json
from pathlib import Path

import pytest
from probe_models import Convention, Model, anywhere, engine_factory

from pipeline import probe as probe_module
from pipeline.cli.app import main
from pipeline.probe import ProbeReport, probe_model, probed_config
from pipeline.probe_profile import write_profile
from pipeline.probe_text import report_json, report_lines
from schemas.errors import ConfigError
from schemas.geometry import FrameKind
from schemas.resize import CanvasRule, ResizeRule, TileRule
from transforms.probe.scene import FULL_SIZES, FULL_TARGETS, draw_scenes
from transforms.profiles.load import load_profile

SCENES = draw_scenes(FULL_SIZES, FULL_TARGETS, 0)
CANVAS = CanvasRule(kind="canvas", width=1008, height=672)

BARE = """\
# Un modelo del que no se sabe nada.
name = "desconocido"
description = "sin marco"

[[checkpoints]]
id = "yo/desconocido"
licence = "apache-2.0"
source = "lo hice yo"

[tasks.grounding]
prompt_version = "1"
prompt = "¿Dónde está? {target}"   # la pregunta
answer_format = "click_xy"
max_tokens = 32

[sources]
prompt = "mi entrenamiento"
"""


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    path = tmp_path / "desconocido.toml"
    path.write_text(BARE, encoding="utf-8")
    return path


def report(profile: str, convention: Convention, frame: FrameKind | None = None) -> ProbeReport:
    model = Model(SCENES, load_profile(profile), convention)
    config = probed_config(profile, None, frame)
    return probe_model(config, engine_factory=engine_factory(model))


def test_an_unknown_frame_is_settled_and_written(bare: Path, tmp_path: Path) -> None:
    found = report(str(bare), Convention(FrameKind.NORM_1000, nonsense=0.3))
    assert (found.expected, found.contradicted) == (None, False)
    target = tmp_path / "medido.toml"
    written = write_profile(found, str(bare), target)
    assert (written.name, written.frame, written.resize) == ("medido", FrameKind.NORM_1000, None)
    assert written == load_profile(str(target))
    text = target.read_text(encoding="utf-8")
    assert "# la pregunta" in text
    assert "pantalla probe, desconocido at main, seed 0: settled: 0 to 1000" in (
        written.sources["probe"].replace("yo/desconocido", "desconocido")
    )
    assert written.sources["prompt"] == "mi entrenamiento"


@pytest.mark.parametrize(
    "rule",
    [
        TileRule(kind="tiles", tile=512, max_tiles=12),
        ResizeRule(factor=28, min_pixels=3_136, max_pixels=1_003_520),
        CANVAS,
    ],
    ids=["tiles", "smart", "canvas"],
)
def test_pixels_after_the_processor_are_written_with_its_rule(
    bare: Path, tmp_path: Path, rule: TileRule | ResizeRule | CanvasRule
) -> None:
    found = report(str(bare), Convention(FrameKind.SEEN_PX, rule))
    written = write_profile(found, str(bare), tmp_path / "medido.toml")
    assert (written.frame, written.resize) == (FrameKind.SEEN_PX, rule)
    # A model of that kind then agrees with the profile that was written for it.
    again = report(str(tmp_path / "medido.toml"), Convention(FrameKind.SEEN_PX))
    assert again.expected in again.verdict.candidates


def test_writing_twice_leaves_one_frame_and_one_source(bare: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "uno.toml", tmp_path / "dos.toml"
    write_profile(report(str(bare), Convention(FrameKind.PERCENT)), str(bare), first)
    found = report(str(first), Convention(FrameKind.NORM_1000))
    assert found.contradicted
    written = write_profile(found, str(first), second)
    assert written.frame is FrameKind.NORM_1000
    assert second.read_text(encoding="utf-8").count("frame = ") == 1
    assert second.read_text(encoding="utf-8").count("pantalla probe,") == 1


def test_what_no_profile_can_state_is_not_written(bare: Path, tmp_path: Path) -> None:
    swapped = report(str(bare), Convention(order="yx"))
    with pytest.raises(ConfigError, match="y before x', which no profile can state"):
        write_profile(swapped, str(bare), tmp_path / "medido.toml")
    lost = report(str(bare), Convention(nonsense=1.0))
    with pytest.raises(ConfigError, match="no profile is written: cannot tell"):
        write_profile(lost, str(bare), tmp_path / "medido.toml")
    fine = report(str(bare), Convention())
    with pytest.raises(ConfigError, match=r"ends in \.toml"):
        write_profile(fine, str(bare), tmp_path / "medido.txt")
    assert list(tmp_path.glob("medido*")) == []


def test_the_report_in_words_and_in_json(bare: Path) -> None:
    found = report("holo2", Convention(FrameKind.ORIGINAL_PX))
    lines = list(report_lines(found))
    assert lines[1] == "Profile  holo2, which says that the model answers in '0 to 1000'"
    assert lines[2] == "Asked    48 questions about drawn screens, seed 0"
    assert (
        lines[-1] == "Result   the profile is contradicted: a job with it is stopped at its start"
    )
    assert any(line.startswith("Verdict  settled: ") for line in lines)
    document = json.loads(report_json(found))
    assert (document["finding"], document["contradicted"]) == ("settled", True)
    assert document["conventions"][0]["relation"] == "best"
    assert document["expected"] == "norm_1000"
    assert (
        "set model.frame = 'norm_1000'" in list(report_lines(report(str(bare), Convention())))[-1]
    )


def test_a_model_is_found_by_its_exact_id_only() -> None:
    assert probed_config(None, "Hcompany/Holo2-8B").profile == "holo2"
    with pytest.raises(ConfigError, match="no bundled profile lists 'Hcompany/Holo2-9B'"):
        probed_config(None, "Hcompany/Holo2-9B")
    with pytest.raises(ConfigError, match="say which model to probe"):
        probed_config(None, None)
    config = probed_config("holo2", "mi/copia", None, ["model.engine.max_model_len=4096"])
    assert config.engine == {"max_model_len": 4096}
    assert (config.profile, config.checkpoint) == ("holo2", "mi/copia")


def run(
    monkeypatch: pytest.MonkeyPatch, convention: Convention | None, *arguments: str
) -> tuple[int, ProbeReport | None]:
    """The command with a simulated model in place of vLLM."""
    profile = load_profile(arguments[arguments.index("--profile") + 1])
    script = anywhere if convention is None else Model(SCENES, profile, convention)
    monkeypatch.setattr(probe_module, "vllm_factory", lambda _: engine_factory(script))
    with pytest.raises(SystemExit) as ended:
        main(["probe", *arguments])
    return int(ended.value.code or 0), None


def test_exit_codes_and_output(
    monkeypatch: pytest.MonkeyPatch, bare: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, Convention(), "--profile", "holo2")[0] == 0
    assert "Result   the profile agrees with the model" in capsys.readouterr().out
    assert run(monkeypatch, Convention(FrameKind.NORM_1), "--profile", "holo2")[0] == 2
    assert "0 to 1 " in capsys.readouterr().out
    assert run(monkeypatch, None, "--profile", "holo2")[0] == 1
    assert "Verdict  cannot tell: " in capsys.readouterr().out
    assert run(monkeypatch, Convention(), "--profile", str(bare), "--json")[0] == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["finding"] == "settled"
    assert "Asking 48 questions about 8 drawn screens" in captured.err
    assert run(monkeypatch, Convention(), "--profile", "holo2", "--frame", "metros")[0] == 2
    assert "no such frame" in capsys.readouterr().err


def test_the_written_file_is_named(
    monkeypatch: pytest.MonkeyPatch, bare: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "medido.toml"
    arguments = ("--profile", str(bare), "--write", str(target))
    assert run(monkeypatch, Convention(FrameKind.PERCENT), *arguments)[0] == 0
    assert f"Written  {target}: profile 'medido', frame percent" in capsys.readouterr().out


def test_the_readme_shows_what_the_probe_says() -> None:
    readme = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
    shown = readme.partition("```\nconvention  ")[2].partition("\n```")[0]
    said = report_lines(report("holotron-12b", Convention(FrameKind.NORM_1000, nonsense=0.3)))
    lines = [line for line in f"convention  {shown}".splitlines() if line]
    assert len(lines) == 8
    assert set(lines) <= set("\n".join(said).splitlines())
