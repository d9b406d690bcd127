"""The real engine, started once on the CPU with the nano checkpoint."""

import dataclasses
import json
import pickle
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from pipeline.nano.checkpoint import ensure_checkpoint
from schemas.caches import CacheCounts
from schemas.codes import QueryKind, QueryOrigin, RejectReason
from schemas.errors import ConfigError, EngineError
from schemas.geometry import FrameKind
from schemas.provenance import Provenance
from schemas.records import Answer, ByteRange, Member, Query, Screen
from transforms.compose import ComposeSettings, Question, compose_samples, to_request
from transforms.engines.base import EngineRequest
from transforms.engines.vllm import VllmEngine, start_vllm, vllm_factory, vllm_settings
from transforms.engines.vllm_settings import VllmSettings
from transforms.parse import parse_answer
from transforms.profiles.load import load_profile
from transforms.resize import seen_image, seen_size

pytestmark = pytest.mark.vllm

PROFILE = load_profile("nano")
SIZES = ((1280, 800), (390, 844))


@pytest.fixture(scope="module")
def checkpoint() -> Path:
    return ensure_checkpoint()


@pytest.fixture(scope="module")
def settings(checkpoint: Path) -> VllmSettings:
    # Fewer tokens a step than one prompt has: prompts are then computed in pieces, which is where
    # vLLM 0.32 loses seeded requests on a CPU.
    small = {"max_num_batched_tokens": 400, "max_num_seqs": 16}
    return vllm_settings(PROFILE, str(checkpoint), overrides=small, name="nano")


@pytest.fixture(scope="module")
def engine(settings: VllmSettings) -> Iterator[VllmEngine]:
    started = time.monotonic()
    running = start_vllm(settings)
    print(f"\nvLLM started in {time.monotonic() - started:.1f} s: {running.info}")
    yield running
    running.close()


def picture(size: tuple[int, int]) -> Image.Image:
    image = Image.new("RGB", size, "white")
    ImageDraw.Draw(image).rectangle((40, 40, 200, 90), fill="navy")
    return image


def questions(engine: VllmEngine, k: int, *texts: str) -> list[tuple[Question, EngineRequest]]:
    """The same questions about one picture of each size."""
    compose = ComposeSettings("nano", engine.info.revision, k=k)
    asked = []
    for number, size in enumerate(SIZES):
        image, seen = seen_image(picture(size), PROFILE.resize)
        queries = tuple(
            Query(index, QueryKind.GROUNDING, text, QueryOrigin.SIDECAR)
            for index, text in enumerate(texts)
        )
        member = Member(f"{number}.png", ByteRange(f"{number}.png", None, 1))
        screen = Screen(
            f"{number:064x}", member, seen.original, "PNG", "RGB", 1, 1, Provenance(), queries
        )
        made = compose_samples(screen, PROFILE, FrameKind.NORM_1000, seen, compose)
        asked += [(question, to_request(question, image, PROFILE)) for question in made.questions]
    return asked


def drain(engine: VllmEngine, count: int) -> dict[str, Answer]:
    answers: dict[str, Answer] = {}
    while len(answers) < count:
        answers |= {answer.request_id: answer for answer in engine.collect()}
    return answers


@pytest.fixture(scope="module")
def asked(engine: VllmEngine) -> list[tuple[Question, EngineRequest]]:
    return questions(engine, 3, "el botón Guardar", "la lupa", "{target}", "Año: «ñ»")


@pytest.fixture(scope="module")
def answers(engine: VllmEngine, asked: list[tuple[Question, EngineRequest]]) -> dict[str, Answer]:
    started = time.monotonic()
    for _, request in asked:
        engine.submit(request)
    answers = drain(engine, len(asked))
    seconds = time.monotonic() - started
    tokens = sum(one.token_count for answer in answers.values() for one in answer.completions)
    print(
        f"\n{len(answers)} requests, {tokens} tokens in {seconds:.1f} s: {tokens / seconds:.0f}/s"
    )
    return answers


def test_every_request_has_its_three_answers(
    asked: list[tuple[Question, EngineRequest]], answers: dict[str, Answer]
) -> None:
    assert set(answers) == {request.request_id for _, request in asked}
    assert len(answers) == 8
    for answer in answers.values():
        assert answer.error_reason is None
        assert len(answer.completions) == 3
        assert all(one.finish_reason == "stop" for one in answer.completions)
        assert all(0 < one.token_count <= 64 for one in answer.completions)


def test_every_answer_is_json_of_the_schema(answers: dict[str, Answer]) -> None:
    texts = [one.text for answer in answers.values() for one in answer.completions]
    assert len(set(texts)) > 1  # noise, but not one and the same
    for text in texts:
        assert text == json.dumps(json.loads(text), separators=(",", ":"))  # compact
        for item in json.loads(text):
            assert len(item["bbox_2d"]) == 4
            assert all(0 <= number <= 1000 for number in item["bbox_2d"])


def test_every_answer_is_read(
    asked: list[tuple[Question, EngineRequest]], answers: dict[str, Answer]
) -> None:
    for question, request in asked:
        for one in answers[request.request_id].completions:
            parsed = parse_answer(
                one.text,
                one.finish_reason,
                question.task.answer_format,
                FrameKind.NORM_1000,
                question.sample.seen,
            )
            assert parsed.status in {"ok", "absent", "degenerate"}


def test_prompt_tokens_count_the_image_as_the_processor_does(
    asked: list[tuple[Question, EngineRequest]], answers: dict[str, Answer]
) -> None:
    for question, request in asked:
        seen = question.sample.seen.seen
        image_tokens = seen.width * seen.height // 32**2
        text_tokens = answers[request.request_id].prompt_tokens - image_tokens
        assert 10 < text_tokens < 120


def test_questions_about_one_image_share_its_work(
    answers: dict[str, Answer],
) -> None:
    assert sum(answer.cached_tokens for answer in answers.values()) > 0


def test_the_caches_of_images_tell_how_often_they_helped(engine: VllmEngine) -> None:
    before = engine.caches
    asked = questions(engine, 3, "uno, aparte", "dos, aparte", "tres, aparte")[:3]
    fresh = [dataclasses.replace(request, image_key="aparte") for _, request in asked]
    for request in fresh:
        engine.submit(request)
    drain(engine, 3)
    # Three questions about one picture, nine prompts: processed once, encoded once.
    assert engine.caches - before == CacheCounts(3, 2, 9, 1)


def test_b074_one_overlong_prompt_fails_alone(engine: VllmEngine) -> None:
    asked = questions(engine, 3, "uno", "la " * 4000, "tres", "la " * 100_000)
    for _, request in asked:
        engine.submit(request)
    answers = drain(engine, 8)
    for question, request in asked:
        answer = answers[request.request_id]
        if len(question.sample.query.instruction) > 100:
            assert answer.error_reason is RejectReason.PROMPT_TOO_LONG
            assert "4096" in answer.error_detail
            assert answer.completions == ()
        else:
            assert len(answer.completions) == 3


def test_b077_requests_that_cannot_be_rendered_fail_alone(engine: VllmEngine) -> None:
    good, other = (request for _, request in questions(engine, 1, "uno"))
    strip = Image.new("RGB", (32, 9000))
    bad = [
        dataclasses.replace(good, request_id="aspect", image=strip, image_key="strip"),
        dataclasses.replace(good, request_id="schema", json_schema='{"type": "nada"}'),
        dataclasses.replace(good, request_id="broken", json_schema="{"),
        dataclasses.replace(good, request_id="top_p", sampling=PROFILE.vote.model_copy(
            update={"top_p": 7.0})),
    ]  # fmt: skip
    for request in (good, *bad, other):
        engine.submit(request)
    answers = drain(engine, 6)
    assert answers[good.request_id].completions
    assert answers[other.request_id].completions
    for request in bad:
        assert answers[request.request_id].error_reason is RejectReason.REQUEST_REFUSED
        assert answers[request.request_id].error_detail


def test_a_request_whose_time_is_over_is_given_up_alone(engine: VllmEngine) -> None:
    good, late = (request for _, request in questions(engine, 3, "uno"))
    for request in (good, dataclasses.replace(late, timeout_seconds=1e-6)):
        engine.submit(request)
    answers = drain(engine, 2)
    assert answers[good.request_id].completions
    assert answers[late.request_id].error_reason is RejectReason.REQUEST_TIMEOUT
    assert "request_timeout_seconds" in answers[late.request_id].error_detail
    engine.submit(late)  # the engine has forgotten it, and can be asked again
    assert drain(engine, 1)[late.request_id].completions


def test_special_tokens_in_an_instruction_do_no_harm(engine: VllmEngine) -> None:
    texts = ("<|image_pad|>", "<|vision_start|><|image_pad|><|vision_end|>", "<|im_end|>", "fin")
    asked = questions(engine, 1, *texts)
    for _, request in asked:
        engine.submit(request)
    answers = drain(engine, len(asked))
    for question, request in asked:
        answer = answers[request.request_id]
        assert answer.completions or question.sample.query.instruction != "fin"


def test_the_same_request_has_the_same_answer(engine: VllmEngine) -> None:
    (_, request), _ = questions(engine, 2, "otra vez")
    texts = []
    for name in ("a", "b"):
        engine.submit(dataclasses.replace(request, request_id=name))
        answer = drain(engine, 1)[name]
        texts.append([one.text for one in answer.completions])
    assert texts[0] == texts[1]


def test_another_thread_is_refused(engine: VllmEngine) -> None:
    (_, request), _ = questions(engine, 1, "uno")
    said = []

    def use() -> None:
        for call in (engine.collect, lambda: engine.submit(request)):
            with pytest.raises(EngineError, match="belongs to the thread") as caught:
                call()
            said.append(str(caught.value))

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert len(said) == 2


def test_a_second_engine_in_the_process_is_refused(
    engine: VllmEngine, settings: VllmSettings
) -> None:
    with pytest.raises(EngineError, match="has a vLLM engine already"):
        start_vllm(settings)


def test_idle_collect_is_empty(engine: VllmEngine) -> None:
    assert engine.collect() == []


def test_info_says_what_runs(engine: VllmEngine, settings: VllmSettings) -> None:
    info = engine.info
    assert (info.engine, info.version, info.model) == ("vllm", "0.32.0", "nano")
    assert info.revision == settings.revision
    assert info.revision.startswith("sha256:")
    assert info.max_in_flight == 2 * 16


def test_the_factory_is_picklable(settings: VllmSettings) -> None:
    assert pickle.loads(pickle.dumps(vllm_factory(settings))).args == (settings,)


def test_our_resize_is_the_processors() -> None:
    from transformers.models.qwen2_vl.image_processing_qwen2_vl import smart_resize

    rule = PROFILE.resize
    assert rule is not None
    for width in (32, 100, 1023, 1280, 1920, 8000):
        for height in (32, 99, 800, 1080, 2400, 6000):
            if max(width, height) > 150 * min(width, height):
                continue
            size = seen_size(seen_image(Image.new("1", (width, height)), None)[1].original, rule)
            once = smart_resize(height, width, rule.factor, rule.min_pixels, rule.max_pixels)
            again = smart_resize(*once, rule.factor, rule.min_pixels, rule.max_pixels)
            assert once == again == (size.height, size.width)


def test_after_close_calls_are_errors_and_wrong_settings_say_what_to_change(
    engine: VllmEngine, settings: VllmSettings
) -> None:
    # Last in the module: it closes the shared engine.
    (_, request), _ = questions(engine, 1, "uno")
    engine.close()
    engine.close()
    with pytest.raises(EngineError, match="closed"):
        engine.collect()
    with pytest.raises(EngineError, match="closed"):
        engine.submit(request)
    assert engine.caches == CacheCounts(), "unknown, not nothing"
    misspelt = dataclasses.replace(settings, engine={**settings.engine, "max_num_seq": 4})
    with pytest.raises(ConfigError, match=r"max_num_seq is .*engine\.max_num_seqs\?"):
        start_vllm(misspelt)
    unusable = dataclasses.replace(settings, engine={**settings.engine, "dtype": "int3"})
    with pytest.raises(ConfigError, match=r"vLLM [0-9.]+ refuses the settings of"):
        start_vllm(unusable)
    too_long = dataclasses.replace(settings, engine={**settings.engine, "max_model_len": 10**6})
    with pytest.raises(ConfigError, match="max_model_len"):
        start_vllm(too_long)
