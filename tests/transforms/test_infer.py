import random
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from PIL import Image

from schemas.codes import QueryKind, QueryOrigin, RejectReason, Stage
from schemas.errors import DeadlineError, EngineError
from schemas.geometry import SeenImage, Size
from schemas.profile import Sampling, TaskSpec
from schemas.provenance import Provenance
from schemas.records import (
    Answer,
    ByteRange,
    Completion,
    Member,
    Query,
    Reject,
    Sample,
    Screen,
    Shard,
    ShardKind,
    Unit,
)
from transforms import infer as infer_module
from transforms import prefetch as prefetch_module
from transforms.compose import Question
from transforms.engines.base import EngineInfo, EngineRequest
from transforms.engines.clock import BusyClock
from transforms.infer import infer
from transforms.prefetch import Prefetch, parallel_flat_map
from transforms.work import Ask, Asked, ComposeEvent, Refused, UnitEnd

TASK = TaskSpec(prompt_version="1", prompt="{target}", answer_format="click_xy", max_tokens=8)
SIZE = Size(32, 32)


class EchoEngine:
    """Answers a few requests at a time, in shuffled order, and remembers what it saw."""

    def __init__(self, room: int, *, dies_after: int | None = None) -> None:
        self.info = EngineInfo("echo", "0", "echo", "0", room)
        self.waiting: deque[EngineRequest] = deque()
        self.order: list[str] = []
        self.most = 0
        self._dies_after = dies_after
        self._random = random.Random(7)

    def submit(self, request: EngineRequest) -> None:
        self.waiting.append(request)
        self.order.append(request.request_id)
        self.most = max(self.most, len(self.waiting))

    def collect(self) -> list[Answer]:
        if self._dies_after is not None and len(self.order) >= self._dies_after:
            raise EngineError("the scripted engine died")
        batch = [self.waiting.popleft() for _ in range(min(3, len(self.waiting)))]
        self._random.shuffle(batch)
        return [Answer(r.request_id, (Completion(r.prompt, "stop", 1),)) for r in batch]

    def close(self) -> None:
        self.waiting.clear()


def unit(index: int) -> Unit:
    return Unit(f"unit-{index}", Shard("/s.tar", ShardKind.TAR), index, ())


def asked(of: Unit, screen_index: int, questions: int) -> Asked:
    member = Member(f"{of.index}-{screen_index}", ByteRange("x", 0, 1))
    screen_id = f"{of.unit_id}/{screen_index}"
    queries = tuple(
        Query(i, QueryKind.GROUNDING, f"{screen_id}/{i}", QueryOrigin.SIDECAR)
        for i in range(questions)
    )
    screen = Screen(screen_id, member, SIZE, "PNG", "RGB", 1, 1, Provenance(), queries)
    asks = tuple(ask(screen_id, query) for query in queries)
    return Asked(of, screen, asks)


def ask(screen_id: str, query: Query) -> Ask:
    seen = SeenImage.unchanged(SIZE)
    sample = Sample(query.instruction, screen_id, query, query.instruction, "1", seen)
    image = Image.new("RGB", (32, 32))
    request = EngineRequest(
        sample.sample_id, image, screen_id, sample.prompt, None, 1, Sampling(), 8, 0, None, "{}"
    )
    return Ask(Question(sample, TASK, Sampling(), 1, 0), request)


def events(units: int, screens: int, questions: int) -> Iterator[ComposeEvent]:
    for index in range(units):
        for screen in range(screens):
            yield asked(unit(index), screen, questions)
        yield UnitEnd(unit(index))


def test_every_question_gets_its_own_answer_and_every_unit_ends_once() -> None:
    engine = EchoEngine(room=5)
    done = list(infer(Prefetch(events(4, 3, 2), 2), engine, BusyClock()))
    assert sorted(u.unit.index for u in done) == [0, 1, 2, 3]
    for work in done:
        assert [s.screen_id for s in work.screens] == [
            f"unit-{work.unit.index}/{i}" for i in range(3)
        ]
        assert len(work.posed) == 6
        for posed in work.posed:
            sample = posed.question.sample
            assert work.answers[sample.sample_id].completions[0].text == sample.query.instruction


def test_the_engine_is_never_given_more_than_it_has_room_for() -> None:
    engine = EchoEngine(room=4)
    list(infer(Prefetch(events(3, 2, 9), 2), engine, BusyClock()))
    assert engine.most <= 4


def test_the_next_unit_is_in_the_engine_before_the_last_one_is_done() -> None:
    engine = EchoEngine(room=6)
    source = Prefetch(events(2, 1, 4), 8)
    source._thread.join(5)
    first = next(infer(source, engine, BusyClock()))
    source.close()
    assert first.unit.index == 0
    assert any(name.startswith("unit-1") for name in engine.order)


def test_questions_of_one_screen_stay_together() -> None:
    engine = EchoEngine(room=3)
    list(infer(Prefetch(events(2, 3, 4), 2), engine, BusyClock()))
    screens = [name.rsplit("/", 1)[0] for name in engine.order]
    changes = sum(a != b for a, b in pairwise(screens))
    assert changes == len(set(screens)) - 1


def test_a_unit_of_rejects_alone_ends_without_the_engine() -> None:
    reject = Reject(Stage.DECODE, RejectReason.IMAGE_CORRUPT, "bad", "a.png")
    source: list[ComposeEvent] = [Refused(unit(0), reject, is_member=True), UnitEnd(unit(0))]
    engine = EchoEngine(room=2)
    (work,) = infer(Prefetch(source, 2), engine, BusyClock())
    assert (len(work.refused), work.posed, engine.order) == (1, [], [])


def test_a_dead_engine_is_an_error_not_a_silence() -> None:
    source = Prefetch(events(3, 2, 3), 2)
    with pytest.raises(EngineError, match="died"):
        list(infer(source, EchoEngine(room=4, dies_after=6), BusyClock()))
    source.close()


def test_an_error_while_reading_reaches_the_job_after_what_came_before() -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise OSError("disk on fire")

    source = Prefetch(broken(), 4)
    assert source.poll(5) == 1
    with pytest.raises(OSError, match="disk on fire"):
        source.poll(5)
    assert source.exhausted


def test_the_reader_stays_a_bounded_way_ahead() -> None:
    made: list[int] = []
    resumed = threading.Event()

    def source() -> Iterator[int]:
        for i in range(100):
            made.append(i)
            if i == 3:
                resumed.set()
            yield i

    ahead = Prefetch(source(), depth=3)
    assert resumed.wait(5)
    assert len(made) == 4
    ahead.close()
    assert len(made) < 100


def test_a_reader_that_brings_nothing_is_not_waited_for_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(infer_module, "READ_SECONDS", 0.1)
    monkeypatch.setattr(prefetch_module, "CLOSE_SECONDS", 0.1)
    held = threading.Event()

    def silent() -> Iterator[ComposeEvent]:
        held.wait(60)
        yield from ()

    source = Prefetch(silent(), 2)
    with pytest.raises(DeadlineError, match="no screen came from the shards"):
        list(infer(source, EchoEngine(room=4), BusyClock()))
    source.close()
    held.set()


def test_one_screen_that_never_decodes_is_not_waited_for_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prefetch_module, "ITEM_SECONDS", 0.1)
    held = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(DeadlineError, match="not decoded or resized"):
            list(parallel_flat_map(pool, lambda _: [held.wait(60)], [1], ahead=1))
        held.set()


def test_units_that_are_not_whole_are_dropped_when_the_job_gives_up() -> None:
    asked_to: list[int] = []

    def give_up() -> bool:
        asked_to.append(1)
        return len(asked_to) > 3

    source = Prefetch(events(4, 3, 4), 2)
    done = list(infer(source, EchoEngine(room=4), BusyClock(), give_up))
    source.close()
    assert len(done) < 4


def test_units_without_questions_come_while_more_of_them_come() -> None:
    brought = []

    def rejects_alone() -> Iterator[ComposeEvent]:
        for index in range(50):
            brought.append(index)
            yield UnitEnd(unit(index))

    source = Prefetch(rejects_alone(), 2)
    first = next(infer(source, EchoEngine(room=4), BusyClock()))
    assert first.unit.index == 0
    assert len(brought) < 10
    source.close()


def test_the_clock_counts_only_while_there_is_work() -> None:
    times = iter([0.0, 2.0, 10.0, 11.0, 11.0, 15.0])
    clock = BusyClock(lambda: next(times))
    clock.start()
    clock.stop()
    clock.start()
    assert clock.take() == 3.0
    clock.stop()
    assert clock.take() == 4.0


def test_time_in_steps_is_part_of_the_busy_time() -> None:
    now = [0.0]

    class Timed(EchoEngine):
        """A step takes two seconds, rendering a request half a second."""

        def submit(self, request: EngineRequest) -> None:
            now[0] += 0.5
            super().submit(request)

        def collect(self) -> list[Answer]:
            now[0] += 2.0
            collects.append(1)
            return super().collect()

    collects: list[int] = []
    clock = BusyClock(lambda: now[0])
    list(infer(Prefetch(events(3, 2, 2), 16), Timed(room=4), clock))
    assert clock.take_steps() == 2.0 * len(collects)
    assert clock.take() == now[0] == 2.0 * len(collects) + 0.5 * 12
    assert clock.take_steps() == 0
