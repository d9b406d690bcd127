"""The workload "agents": web agents with several screenshots and a long text, many at a time.

Shaped after WebVoyager, whose prompts are not published for the figures that models are compared
by. An agent takes `STEPS` steps. A step is a conversation: a system text that all agents share, the
last turns with a screenshot, the text of its page and a scripted answer each, and a new turn. Up to
the third step a prompt is the one before plus a turn; from then on the oldest turn is dropped, and
the prompt is another one after the system text. Answers in the history are scripted, so that every
system is asked the same.
"""

from __future__ import annotations

import io
import random
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice

from PIL import Image

from pipeline.bench.closed_loop import Chain
from pipeline.bench.workloads import scenes
from schemas.codes import QueryKind
from schemas.errors import ConfigError
from schemas.geometry import Size
from schemas.ids import canonical_json
from schemas.profile import ModelProfile
from transforms.compose import grammar_text, prompt_text, system_text
from transforms.engines.base import EngineRequest, Exchange
from transforms.engines.vllm import VllmEngine
from transforms.prefetch import parallel_flat_map
from transforms.probe.labels import LABELS
from transforms.probe.scene import Scene, draw_scenes
from transforms.resize import seen_image

STEPS, PICTURES = 5, 3
"""Steps of an agent, and the most screenshots in one prompt."""

TEXT_TOKENS = 6000
"""Tokens of text in the longest prompts, where the model has room for them."""

SCREEN = Size(1920, 1080)
"""A desktop's browser window, for all models but nano, which knows its own small screens only."""

AGENTS_AT_ONCE = 100
"""Agents in flight in the comparison with raw vLLM, and in the figure published for Holotron."""

MAX_ANSWER = 128
"""Tokens of an answer at most."""

_DRAWN = 40
"""Screens drawn; each is shown to several agents, under a key of its own that no cache knows."""

_SAFE = 0.97
"""Share of the room for text that is used: how many tokens a text has is reckoned from a sample."""

_SAMPLE_LINES = 200
_REPLY = '{"accion": "clic", "elemento": 12}'


@dataclass(frozen=True, slots=True)
class AgentSizes:
    """How long the prompts are.

    Attributes:
        system_lines: lines of text that all agents share; `page_lines` come with each screenshot.
        image_tokens: of `PICTURES` screenshots and the turns around them, as the engine counted.
        text_tokens: aimed at in the longest prompts: `TEXT_TOKENS`, or what `max_model_len` allows.
    """

    system_lines: int
    page_lines: int
    image_tokens: int
    text_tokens: int
    max_model_len: int

    def __str__(self) -> str:
        short = "" if self.text_tokens >= TEXT_TOKENS else f", all that {self.max_model_len} allow"
        return (
            f"{STEPS} steps, up to {PICTURES} screenshots ({self.image_tokens:,} tokens with their "
            f"turns) and {self.text_tokens:,} tokens of text{short}"
        )


@dataclass(frozen=True, slots=True)
class Agents:
    """Everything the requests of agents are made of; screenshots are PNG bytes until asked.

    Attributes:
        pictures: screens as files, and what can be asked about each.
    """

    profile: ModelProfile
    pictures: tuple[tuple[bytes, str], ...]
    sizes: AgentSizes


def measured_agents(engine: VllmEngine, profile: ModelProfile) -> Agents:
    """Agents whose prompts fit the model: asks the engine once what three screenshots take.

    Raises:
        ConfigError: if the screenshots alone do not fit.
        EngineError: if the engine cannot go on.
    """
    empty = Agents(profile, agent_pictures(profile), AgentSizes(0, 0, 0, 0, 0))
    engine.submit(replace(agent_step(empty, 0, PICTURES - 1), max_tokens=1))
    answers = engine.collect()
    while not answers:
        answers = engine.collect()
    limit = engine.llm.llm_engine.vllm_config.model_config.max_model_len
    taken = answers[0].prompt_tokens
    room = int((limit - taken - MAX_ANSWER) * _SAFE)
    if answers[0].error_reason is not None or room < 0:
        raise ConfigError(
            f"--workload agents: {PICTURES} screenshots do not fit model.engine.max_model_len = "
            f"{limit}: {answers[0].error_detail or f'they take {taken} tokens'}"
        )
    text = min(TEXT_TOKENS, room)
    sample = _lines(random.Random(0), _SAMPLE_LINES)
    a_line = len(engine.llm.get_tokenizer().encode(sample)) / _SAMPLE_LINES
    lines = int(text / a_line)
    page = lines // (PICTURES + 1)
    return replace(empty, sizes=AgentSizes(lines - PICTURES * page, page, taken, text, limit))


def agent_pictures(profile: ModelProfile) -> tuple[tuple[bytes, str], ...]:
    """Screens of `SCREEN` px as PNG bytes, or nano's own, and an instruction for each."""
    if profile.probe_screens == "spanish":
        drawn: Iterator[Scene] = (
            scene for seed in range(_DRAWN // 8) for scene in draw_scenes((SCREEN,) * 8, 6, seed)
        )
    else:
        drawn = islice(scenes(profile.probe_screens), _DRAWN)
    return tuple((_png(scene.image), scene.targets[0].instruction) for scene in drawn)


def _png(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def _lines(chance: random.Random, lines: int) -> str:
    """Text as of an accessibility tree, of `lines` lines."""
    return "\n".join(
        f"[{number}] botón «{chance.choice(LABELS)}» en {chance.randrange(1000)}, "
        f"{chance.randrange(1000)}"
        for number in range(lines)
    )


def agent_steps(agents: Agents, number: int) -> tuple[EngineRequest, ...]:
    """The requests of one agent, each with all its images decoded and resized.

    Args:
        agents: what they are made of.
        number: of the agent; two agents share the system text and nothing else.
    """
    turns = [_turn(agents, number, step) for step in range(STEPS)]
    return tuple(
        _request(agents, number, step, turns[max(0, step - PICTURES + 1) : step + 1])
        for step in range(STEPS)
    )


def agent_step(agents: Agents, number: int, step: int) -> EngineRequest:
    """One of these requests alone; only its own images are decoded."""
    first = max(0, step - PICTURES + 1)
    turns = [_turn(agents, number, place) for place in range(first, step + 1)]
    return _request(agents, number, step, turns)


def _request(agents: Agents, number: int, step: int, turns: Sequence[Exchange]) -> EngineRequest:
    task, now = agents.profile.tasks[QueryKind.GROUNDING], turns[-1]
    rules = system_text(task, Size(*now.image.size)) or ""
    return EngineRequest(
        request_id=f"agent-{number:05d}-{step}",
        image=now.image,
        image_key=now.image_key,
        prompt=now.prompt,
        system=f"{rules}\n{_shared(agents.sizes.system_lines)}".strip() or None,
        n=1,
        sampling=agents.profile.greedy,
        max_tokens=min(task.max_tokens, MAX_ANSWER),
        seed=number,
        json_schema=grammar_text(task),
        chat_template_kwargs=canonical_json(dict(agents.profile.chat_template_kwargs)),
        image_first=task.image_first,
        keep_special_tokens=task.keep_special_tokens,
        earlier=tuple(turns[:-1]),
    )


@cache
def _shared(lines: int) -> str:
    return _lines(random.Random(0), lines)


def _turn(agents: Agents, number: int, step: int) -> Exchange:
    place = number * STEPS + step
    data, instruction = agents.pictures[place % len(agents.pictures)]
    image, seen = seen_image(Image.open(io.BytesIO(data)), agents.profile.resize)
    page = _lines(random.Random(place + 1), agents.sizes.page_lines)
    task = agents.profile.tasks[QueryKind.GROUNDING]
    asked = prompt_text(task, instruction, seen.seen)
    return Exchange(image, f"agent-{number}-{step}", f"{page}\n{asked}".lstrip(), _REPLY)


def agent_chains(
    agents: Agents, numbers: range, staggered: int, threads: int
) -> Generator[Chain, None, None]:
    """One chain for each agent; their images are decoded a few agents ahead, in threads.

    Args:
        agents: what they are made of.
        numbers: of the agents.
        staggered: so many of the first ones begin at different steps, as agents do that have been
            at work for a while.
        threads: that decode.
    """

    def made(number: int) -> list[Chain]:
        place = number - numbers.start
        return [agent_steps(agents, number)[place % STEPS if place < staggered else 0 :]]

    with ThreadPoolExecutor(threads) as pool:
        yield from parallel_flat_map(pool, made, numbers, 2 * threads)


def agents_in_turn(count: int) -> Iterator[tuple[int, int]]:
    """Agent and step of every request, as `AGENTS_AT_ONCE` agents would ask them.

    The first steps of a hundred agents, then their second ones, and so on.
    """
    for first in range(0, count, AGENTS_AT_ONCE):
        for step in range(STEPS):
            for number in range(first, min(first + AGENTS_AT_ONCE, count)):
                yield number, step


def agent_requests(agents: Agents, count: int, threads: int) -> Iterator[EngineRequest]:
    """The requests of `agents_in_turn`; each decodes its own images, ahead in threads."""

    def alone(place: tuple[int, int]) -> list[EngineRequest]:
        return [agent_step(agents, *place)]

    with ThreadPoolExecutor(threads) as pool:
        yield from parallel_flat_map(pool, alone, agents_in_turn(count), 2 * threads)
