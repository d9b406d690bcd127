"""Starting the engine imports thousands of modules: once compiled, and as everything was after."""

import gc
import importlib
import sys
from pathlib import Path

import pytest

from transforms.engines.vllm_start import swift_imports


def test_bytecode_is_kept_where_the_shell_keeps_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("imported_before", "imported_inside"):
        (tmp_path / f"{name}.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    importlib.import_module("imported_before")
    with swift_imports():
        assert not gc.isenabled()
        importlib.import_module("imported_inside")
    kept = [path.name for path in (tmp_path / "__pycache__").glob("*")]
    assert [name.split(".")[0] for name in kept] == ["imported_inside"]


@pytest.mark.parametrize("collecting", [True, False])
def test_a_failed_start_leaves_the_process_as_it_was(
    collecting: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    if not collecting:
        gc.disable()
    try:
        with pytest.raises(OSError, match="no weights"), swift_imports():
            raise OSError("no weights")
        assert gc.isenabled() is collecting
        assert sys.dont_write_bytecode is True
    finally:
        gc.enable()
