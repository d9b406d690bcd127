import io

from rich.console import Console

from pipeline.progress import LINE_SECONDS, Progress
from schemas.commits import CommitRecord, UnitCounts


def commit(members: int = 4) -> CommitRecord:
    return CommitRecord("u", 0, "s", "f", "1.0.0", (), UnitCounts(members=members, screens=members))


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def plain() -> tuple[Progress, Clock, io.StringIO]:
    sink, clock = io.StringIO(), Clock()
    return Progress(Console(file=sink, width=200), clock), clock, sink


def test_lines_come_at_a_steady_pace_with_speed_and_time_left() -> None:
    progress, clock, sink = plain()
    progress.start(total_units=10, total_screens=40)
    for _ in range(5):
        clock.now += LINE_SECONDS / 2
        progress.advance(commit())
    lines = sink.getvalue().splitlines()
    assert lines[0] == "10 units, 40 screens"
    assert len(lines) == 3
    assert lines[1] == "2/10 units, 8/40 screens, 0.53 screens/s, about 1 min 00 s left"


def test_units_that_were_done_before_do_not_count_for_the_speed() -> None:
    progress, clock, sink = plain()
    progress.start(total_units=4, total_screens=16, done_units=2, done_screens=8)
    clock.now += LINE_SECONDS + 1
    progress.advance(commit())
    lines = sink.getvalue().splitlines()
    assert lines[0] == "4 units, 16 screens, 2 of them committed before"
    assert lines[1] == "3/4 units, 12/16 screens, 0.25 screens/s, about 16 s left"


def test_the_end_is_always_told() -> None:
    progress, clock, sink = plain()
    progress.start(1, 4)
    clock.now += 2
    progress.advance(commit())
    progress.finish()
    progress.finish()
    assert sink.getvalue().splitlines() == [
        "1 unit, 4 screens",
        "1/1 units, 4/4 screens, 2.00 screens/s",
    ]


def test_a_status_is_a_line_and_brackets_are_no_markup() -> None:
    progress, _, sink = plain()
    progress.status("Pushing to [red]http://127.0.0.1[/red]")
    assert sink.getvalue() == "Pushing to [red]http://127.0.0.1[/red]\n"


def test_on_a_terminal_a_bar_shows_units_screens_and_status() -> None:
    sink = io.StringIO()
    progress = Progress(Console(file=sink, width=160, force_terminal=True))
    progress.start(2, 8)
    progress.status("Starting the engine")
    progress.advance(commit())
    progress.advance(commit())
    progress.finish()
    shown = sink.getvalue()
    assert "Annotating" in shown
    assert "8/8" in shown
    assert "2/2 units" in shown
