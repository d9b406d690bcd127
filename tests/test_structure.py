"""The structure that CONTRIBUTING.md promises."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("schemas", "transforms", "label_studio", "pipeline")
ALLOWED = {
    "schemas": {"schemas"},
    "transforms": {"schemas", "transforms"},
    "label_studio": {"schemas", "label_studio"},
    "pipeline": {"schemas", "transforms", "label_studio", "pipeline"},
}
FILES = sorted(file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
MAX_FILE, MAX_FUNCTION, MAX_GRAPH = 300, 40, 60


def name(file: Path) -> str:
    return str(file.relative_to(ROOT))


def imports(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name(file)}: relative import"
            found.add((node.module or "").split(".")[0])
    return found


@pytest.mark.parametrize("file", FILES, ids=name)
def test_data_flows_one_way(file: Path) -> None:
    package = file.relative_to(ROOT).parts[0]
    assert imports(file) & set(PACKAGES) <= ALLOWED[package]


def test_the_engine_library_stays_in_its_modules() -> None:
    users = {name(file) for file in FILES if "vllm" in imports(file)}
    assert users == {"transforms/engines/vllm.py", "transforms/engines/vllm_start.py"}


def test_the_label_studio_client_stays_in_its_package() -> None:
    users = {name(file).split("/")[0] for file in FILES if "label_studio_sdk" in imports(file)}
    assert users == {"label_studio"}


@pytest.mark.parametrize("file", FILES, ids=name)
def test_files_are_short_and_functions_shorter(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MAX_FILE
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            reason = "Long because" in (ast.get_docstring(node) or "")
            assert lines <= MAX_FUNCTION or reason, f"{node.name}: {lines} lines"


def test_the_graph_is_one_page() -> None:
    assert len((ROOT / "pipeline/graph.py").read_text().splitlines()) <= MAX_GRAPH


def test_the_top_level_is_the_given_layout() -> None:
    given = {
        "pyproject.toml", "pipeline", "transforms", "schemas", "label_studio", "tests",
        "README.md", "README.es.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md",
    }  # fmt: skip
    tracked = {entry.name for entry in ROOT.iterdir() if not entry.name.startswith(".")}
    generated = {"uv.lock", "pantalla-demo", "__pycache__", "dist", "pantalla-studio"}
    assert tracked - generated == given
