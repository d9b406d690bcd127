"""What the READMEs promise is true."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from pipeline.config_reader import read_config
from pipeline.demo.demo import screens_dir

ROOT = Path(__file__).resolve().parents[1]
READMES = ("README.md", "README.es.md")
VERBS = (
    "demo",
    "plan",
    "run",
    "show",
    "rejects",
    "shard",
    "push",
    "pull",
    "gold",
    "review",
    "studio",
    "clean",
    "verify",
    "recipes",
    "profiles",
    "probe",
    "bench",
)


def blocks(name: str, language: str) -> list[str]:
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def pantalla(*words: str) -> str:
    command = [str(Path(sys.executable).with_name("pantalla")), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("name", READMES)
def test_the_first_two_bash_blocks_are_the_two_commands(name: str) -> None:
    demo, tests = (block.splitlines() for block in blocks(name, "bash"))
    assert len(demo) == len(tests) == 1
    assert demo[0].endswith("--extra cpu pantalla demo")
    assert tests[0].endswith("--extra cpu pytest")


def test_both_readmes_give_the_same_commands() -> None:
    assert blocks("README.md", "bash") == blocks("README.es.md", "bash")


def test_ci_runs_the_second_command() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    found = re.search(r"^command=\$\((.*)\)$", script, re.MULTILINE)
    assert found is not None
    shown = subprocess.run(
        ["bash", "-c", found.group(1)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert shown.stdout == blocks("README.md", "bash")[1]


def test_the_profiles_shown_are_the_profiles_there_are() -> None:
    assert pantalla("profiles") in blocks("README.md", "text")


@pytest.mark.parametrize("name", READMES)
def test_the_job_shown_is_a_job(name: str, tmp_path: Path) -> None:
    (text,) = blocks(name, "toml")
    tomllib.loads(text)
    path = tmp_path / "job.toml"
    path.write_text(text, encoding="utf-8")
    assert read_config(path, ()).model.profile == "holo2"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_and_is_in_the_readme(verb: str) -> None:
    assert "Usage: pantalla" in pantalla(verb, "--help")
    assert f"pantalla {verb}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_bundled_screens_are_of_licences_we_may_ship() -> None:
    notice = (screens_dir() / "NOTICE.md").read_text(encoding="utf-8")
    for tar in screens_dir().glob("*.tar"):
        assert f"`{tar.name}`" in notice
        data = tar.read_bytes()
        licences = set(re.findall(rb'"licence": ?"([^"]+)"', data))
        assert licences == {b"BSD-3-Clause"}
