"""Requests that are the same to the model are asked once; each sample has its own answer."""

import dataclasses
import io

from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from schemas.codes import RejectReason
from schemas.profile import Sampling
from schemas.records import Answer, Completion
from transforms.engines.base import EngineRequest, Exchange
from transforms.same import SameRequests, model_key, pixel_key

PIXELS = Image.new("RGB", (8, 8))
DRAWN = Sampling(temperature=0.7)


GREEDY = Sampling()


def request(name: str, prompt: str = "¿?", sampling: Sampling = GREEDY) -> EngineRequest:
    seed = sum(name.encode())
    return EngineRequest(name, PIXELS, "key", prompt, None, 1, sampling, 8, seed, None, "{}")


def reply(asked: EngineRequest) -> Answer:
    return Answer(asked.request_id, (Completion(asked.prompt, "stop", 1),), 10)


def picture() -> Image.Image:
    image = Image.new("RGB", (300, 200), "white")
    ImageDraw.Draw(image).rectangle((10, 10, 90, 40), fill="navy")
    return image


def test_everything_that_shapes_an_answer_tells_requests_apart() -> None:
    base = request("a")
    changes = {
        "image_key": "other", "prompt": "other", "system": "other", "n": 2, "sampling": DRAWN,
        "max_tokens": 9, "json_schema": "{}", "chat_template_kwargs": '{"a":1}',
        "image_first": False, "keep_special_tokens": True,
        "earlier": (Exchange(PIXELS, "key", "¿?", "sí"),),
    }  # fmt: skip
    keys = {
        model_key(dataclasses.replace(base, **{name: value})) for name, value in changes.items()
    }
    assert len(keys | {model_key(base)}) == len(changes) + 1
    shapes_nothing = {
        "request_id",
        "image",
        "seed",
        "timeout_seconds",
    }  # the seed: if nothing is drawn
    assert {f.name for f in dataclasses.fields(EngineRequest)} == {*changes} | shapes_nothing


def test_a_seed_counts_only_where_answers_are_drawn() -> None:
    assert model_key(request("a")) == model_key(request("b"))
    assert model_key(request("a", sampling=DRAWN)) != model_key(request("b", sampling=DRAWN))


def test_pixels_have_one_key_whatever_file_they_came_in() -> None:
    files = [io.BytesIO(), io.BytesIO()]
    for file, level in zip(files, (0, 9), strict=True):
        picture().save(file, "PNG", compress_level=level)
    first, second = (Image.open(file).convert("RGB") for file in files)
    assert files[0].getvalue() != files[1].getvalue()
    assert pixel_key(first) == pixel_key(second)
    second.putpixel((299, 199), (255, 255, 254))
    assert pixel_key(first) != pixel_key(second)
    assert pixel_key(Image.new("RGB", (4, 2))) != pixel_key(Image.new("RGB", (2, 4)))


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=40))
def test_each_request_has_its_own_answer_and_the_model_is_asked_once(
    steps: list[tuple[int, bool]],
) -> None:
    same, engine, got = SameRequests(), list[EngineRequest](), list[Answer]()
    asked: list[str] = []
    for number, (prompt, collect) in enumerate(steps):
        one = request(f"r{number}", f"p{prompt}")
        known = same.known(one)
        if known is not None:
            got.append(known)
        elif not same.joins(one):
            same.lead(one)
            engine.append(one)
            asked.append(one.prompt)
        if collect and engine:
            got += same.answers(reply(engine.pop(0)))
    while engine:
        got += same.answers(reply(engine.pop(0)))
    assert len(asked) == len(set(asked)), "each prompt once"
    assert {answer.request_id: answer.completions[0].text for answer in got} == {
        f"r{number}": f"p{prompt}" for number, (prompt, _) in enumerate(steps)
    }
    assert len(got) == len(steps)
    assert sum(answer.is_shared for answer in got) == len(steps) - len(asked)


def test_what_is_remembered_is_bounded_and_an_error_is_not() -> None:
    same = SameRequests(remembered=2)
    for number in range(3):
        one = request(f"r{number}", f"p{number}")
        same.lead(one)
        list(same.answers(reply(one)))
    assert same.known(request("x", "p0")) is None
    assert same.known(request("x", "p2")) is not None
    bad = request("bad", "p9")
    same.lead(bad)
    assert same.joins(request("too", "p9"))
    failed = Answer("bad", error_reason=RejectReason.REQUEST_REFUSED)
    assert [answer.request_id for answer in same.answers(failed)] == ["bad", "too"]
    assert same.known(request("x", "p9")) is None
