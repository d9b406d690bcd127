import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path

import pytest
from job_fixtures import oracle, scripted, shots, write_shard
from PIL import Image
from stored_fixtures import Ask, Stored, make_stored, sample_id

from pipeline.cli.app import main
from pipeline.cli.errors import exit_code, message
from pipeline.run import run_job
from schemas.errors import (
    ConfigError,
    CountMismatchError,
    DatasetError,
    EngineError,
    InputError,
    LabelStudioError,
    PantallaError,
    StorageError,
)

HEAVY = (
    "apache_beam",
    "boto3",
    "label_studio_sdk",
    "numpy",
    "pyarrow",
    "pydantic",
    "torch",
    "vllm",
)

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs the command line in this process: exit code, standard output, standard error."""

    def call(*arguments: str | Path) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        shown = capsys.readouterr()
        return int(ended.value.code or 0), shown.out, shown.err

    return call


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    ask = Ask(
        "Guardá los cambios",
        point=(60.0, 40.0),
        boxes=((40.0, 30.0, 80.0, 50.0),),
        answers=("dijo esto", "y aquello"),
        truth=((40.0, 30.0, 80.0, 50.0),),
        hit=True,
        label="Guardar",
    )
    make_stored(tmp_path, [Stored("uno", (ask, Ask("Abrí", "accept"))), Stored("dos")])
    return tmp_path / "dataset"


@pytest.fixture
def job_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job whose engine is scripted: everything but the model is real."""
    known = shots(3)
    write_shard(tmp_path / "a.tar", known)
    answering = partial(run_job, engine_factory=scripted(oracle(known)))
    monkeypatch.setattr("pipeline.cli.job.run_job", answering)
    path = tmp_path / "trabajo.toml"
    path.write_text(
        '[input]\nshards = ["a.tar"]\nunit_screens = 2\n[output]\ndataset = "salida"\n'
        "[model]\nprobe = 'off'\n[sampling]\nk = 3\n[cost]\nmachine_hour = 2.0\n"
    )
    return path


def test_help_is_light_nothing_heavy_is_imported() -> None:
    code = f"import sys, pipeline.cli.app; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_every_verb_has_help_and_is_listed(cli: Cli) -> None:
    code, out, _ = cli("--help")
    assert code == 0
    for verb in ("demo", "plan", "run", "show", "rejects", "shard", "push", "studio", "profiles"):
        assert f"\n  {verb} " in out
        code, told, _ = cli(verb, "--help")
        assert code == 0
        assert "Usage: pantalla" in told


def test_the_version_is_the_packages(cli: Cli) -> None:
    assert cli("--version") == (0, f"pantalla {version('pantalla')}\n", "")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("x"), 2),
        (InputError("x"), 2),
        (DatasetError("x"), 2),
        (EngineError("x"), 3),
        (StorageError("x"), 4),
        (LabelStudioError("x"), 1),
        (CountMismatchError("x"), 1),
        (PantallaError("x"), 1),
    ],
)
def test_each_error_has_its_exit_code(error: PantallaError, code: int) -> None:
    assert exit_code(error) == code


def test_a_cause_is_told_once() -> None:
    error = StorageError("a.parquet: cannot be written")
    error.__cause__ = OSError("no space left")
    assert message(error) == "a.parquet: cannot be written\n  caused by: no space left"
    error.__cause__ = OSError("cannot be written")
    assert message(error) == "a.parquet: cannot be written"


def test_an_error_is_one_message_without_a_traceback(cli: Cli, tmp_path: Path) -> None:
    code, out, err = cli("run", tmp_path / "nada.toml")
    assert (code, out) == (2, "")
    assert err == f"pantalla: {tmp_path}/nada.toml: there is no such job file\n"


def test_debug_shows_the_traceback_wherever_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PANTALLA_DEBUG", "1")
    for words in (["--debug", "plan", "nada.toml"], ["plan", "nada.toml", "--debug"]):
        with pytest.raises(ConfigError):
            main(words)


def test_a_pattern_that_matches_nothing_is_exit_2(cli: Cli, job_file: Path) -> None:
    code, _, err = cli("run", job_file, "--set", "input.shards=entrda/*.tar")
    assert code == 2
    assert "entrda/*.tar" in err


def test_a_wrong_flag_for_beam_is_exit_2_and_named(cli: Cli, job_file: Path) -> None:
    code, _, err = cli("run", job_file, "--", "--runer=FnApiRunner")
    assert code == 2
    assert "--runer" in err


def test_an_engine_that_dies_is_exit_3(
    cli: Cli, job_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dying(*_: object, **__: object) -> None:
        raise EngineError("the engine died twice")

    monkeypatch.setattr("pipeline.cli.job.run_job", dying)
    assert cli("run", job_file) == (3, "", "pantalla: the engine died twice\n")


def test_run_tells_the_summary_and_a_second_run_that_nothing_was_left(
    cli: Cli, job_file: Path
) -> None:
    code, out, err = cli("run", job_file)
    assert code == 0
    assert "3   (3 members = 3 out + 0 rejected)" in out
    assert "9 of 9 right: 100.0 %" in out
    assert f"{job_file.parent}/salida/report.html" in out
    assert "2/2 units, 3/3 screens" in err
    code, out, _ = cli("run", job_file, "--", "--runner=FnApiRunner")
    assert code == 0
    assert "Nothing to do: 2 units already committed, none recomputed." in out


def test_a_run_over_the_limit_says_why_it_is_exit_1(cli: Cli, job_file: Path) -> None:
    (job_file.parent / "a.tar").write_bytes(b"")
    code, out, _ = cli("run", job_file)
    assert code == 1
    assert "limits.max_reject_share" in out


def test_plan_counts_before_anything_runs(cli: Cli, job_file: Path) -> None:
    code, out, _ = cli("plan", job_file, "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["units"], found["units_done"], found["screens"]) == (2, 0, 3)
    assert (found["queries"], found["answers"]) == (9, 27)
    assert found["cost"] is None
    assert not (job_file.parent / "salida").exists()
    _, told, _ = cli("plan", job_file)
    assert "27 answers" in told
    assert "unknown: no run into this dataset has been timed" in told


def test_plan_after_a_run_knows_the_speed_and_what_is_done(cli: Cli, job_file: Path) -> None:
    cli("run", job_file)
    cli("run", job_file)
    more = write_shard(job_file.parent / "b.tar", shots(4, "otra"))
    code, out, _ = cli("plan", job_file, "--json", "--set", f'input.shards=["{more}"]')
    found = json.loads(out)
    assert code == 0
    assert (found["units_done"], found["screens_left"]) == (0, 4)
    assert found["screens_per_second"] > 0
    assert found["seconds"] == pytest.approx(4 / found["screens_per_second"])
    assert found["cost"] == pytest.approx(found["seconds"] / 3600 * 2.0)
    assert found["conflict"] == ""
    done = json.loads(cli("plan", job_file, "--json")[1])
    assert (done["units_done"], done["screens_left"], done["answers"]) == (2, 0, 0)


def test_plan_warns_of_a_run_that_would_be_refused(cli: Cli, job_file: Path) -> None:
    cli("run", job_file)
    _, out, _ = cli("plan", job_file, "--set", "sampling.k=4")
    assert "the run would be refused" in out


def test_plan_counts_a_localization_question_where_there_is_no_other(
    cli: Cli, job_file: Path
) -> None:
    override = "input.enumerate_elements=always"
    found = json.loads(cli("plan", job_file, "--json", "--set", override)[1])
    assert (found["queries"], found["answers"]) == (12, 9 * 3 + 3)


def test_show_without_a_sample_lists_some(cli: Cli, stored: Path) -> None:
    code, out, _ = cli("show", stored)
    assert code == 0
    assert sample_id("uno", 0)[:12] in out
    assert "Guardá los cambios" in out
    assert "2 of 2 samples" in out
    _, accepted, _ = cli("show", stored, "--route", "accept")
    assert "Guardá" not in accepted
    assert cli("show", stored, "--route", "audit")[1] == "No sample fits.\n"


def test_show_tells_everything_and_draws_the_right_place(
    cli: Cli, stored: Path, tmp_path: Path
) -> None:
    picture = tmp_path / "dibujo.png"
    code, out, _ = cli("show", stored, sample_id("uno", 0)[:9], "--png", picture)
    assert code == 0
    for part in (
        "Localizá: Guardá los cambios",
        "dijo esto",
        "y aquello",
        "box (40.0, 30.0, 80.0, 50.0) button «Guardar»",
        "so the answer is right",
        "review: to be reviewed",
        f"{tmp_path}/capturas.tar: uno.png at byte 512",
    ):
        assert part in out
    with Image.open(picture) as drawn:
        assert drawn.size == (320, 240)
        assert drawn.getpixel((40, 35)) == (230, 140, 20), "the box's edge, in the route's colour"
        assert drawn.getpixel((200, 200)) == (250, 250, 250), "the rest is untouched"


def test_show_names_its_picture_after_the_sample(
    cli: Cli, stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cli("show", stored, sample_id("uno", 1), "--no-picture")
    assert not list(tmp_path.glob("*.png"))
    cli("show", stored, sample_id("uno", 1))
    assert [p.name for p in tmp_path.glob("*.png")] == [f"{sample_id('uno', 1)[:12]}.png"]


def test_show_of_what_is_not_there_is_exit_2(cli: Cli, stored: Path, tmp_path: Path) -> None:
    code, _, err = cli("show", stored, "zzz")
    assert code == 2
    assert "no sample whose id begins with `zzz`" in err
    code, _, err = cli("show", tmp_path)
    assert code == 2
    assert "not a Pantalla dataset" in err


def test_profiles_are_listed_and_shown_with_their_sources(cli: Cli) -> None:
    code, out, _ = cli("profiles")
    assert code == 0
    for name in ("holo2", "holotron-12b", "nano", "qwen3-vl"):
        assert f"\n{name} " in out
    assert "FORBIDDEN" in out  # some checkpoints may not be used commercially
    assert cli("profiles", "list")[1] == out
    _, shown, _ = cli("profiles", "show", "holo1.5")
    assert "Holo1.5-72B: research-only, NO COMMERCIAL USE" in shown
    assert "must not be used commercially" in shown
    _, shown, _ = cli("profiles", "show", "holotron-12b")
    assert "unknown: set model.frame" in shown
    assert "Sources" in shown
    code, _, err = cli("profiles", "show", "holotron")
    assert code == 2
    assert "holotron-12b" in err
