"""What reaches a terminal from outside."""

from pathlib import Path

import pytest
from stored_fixtures import Ask, Stored, make_stored

from pipeline.cli.app import main
from pipeline.sample_text import print_list, print_sample
from pipeline.terminal import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Presioná «Guardar»\nahora", "Presioná «Guardar»\nahora"),
        ("\x1b[31mrojo\x1b[0m", "␛[31mrojo␛[0m"),
        ("\x1b]0;título\x07", "␛]0;título␇"),
        ("a\x00b\rc\td", "a␀b␍c␉d"),
        ("\x9b31m\x7f", "\ufffd31m\ufffd"),
        ("gnp\u202e.exe\u2066", "gnp\ufffd.exe\ufffd"),
    ],
)
def test_what_would_steer_a_terminal_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_long_text_is_cut_where_asked() -> None:
    assert visible("ñ" * 50, limit=10) == "ñ" * 9 + "…"
    assert visible("ñ" * 10, limit=10) == "ñ" * 10


def test_a_listing_and_a_sample_steer_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = make_stored(tmp_path, [Stored("uno", (Ask("\x1b[2Jborrar", point=(1, 2)),))])
    (sample,) = dataset.samples()
    print_list(dataset, 10)
    print_sample(sample, dataset.screen(sample.screen_id))
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert said.count("␛[2Jborrar") >= 2


def test_a_picture_that_cannot_be_written_is_told_without_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = make_stored(tmp_path, [Stored("uno", (Ask("Abrir", point=(1, 2)),))])
    (sample,) = dataset.samples()
    with pytest.raises(SystemExit) as caught:
        main(["show", dataset.uri, sample.sample_id, "--png", str(tmp_path / "no" / "x.png")])
    assert caught.value.code == 2
    assert "the picture cannot be written" in capsys.readouterr().err
