"""The comparison with others: that all are asked the same, and that unequal work is noticed."""

import base64
import io
import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import psutil
import pytest
from PIL import Image

from pipeline.bench.systems import composed_requests
from pipeline.bench.throughput import UnequalWorkError
from pipeline.bench.workloads import WORKLOADS, workload_job
from pipeline.config import load_config
from pipeline.model import resolve_model
from schemas.profile import Sampling
from tests.benchmark.peer_children import (
    Child,
    child_environment,
    engine_options,
    option_words,
    started,
)
from tests.benchmark.peer_scripted import ServiceEngine, ServiceModel
from tests.benchmark.peer_systems import System, Work, job, raw
from tests.benchmark.peer_work import (
    agreement,
    check_agreement,
    check_all_answered,
    check_all_differ,
    write_requests,
)
from tests.benchmark.peers import NOWHERE, compare
from transforms.engines.base import EngineRequest
from transforms.engines.vllm_settings import VllmSettings


def request(key: str, *, n: int = 1, temperature: float = 0.0) -> EngineRequest:
    return EngineRequest(
        request_id=key,
        image=Image.new("RGB", (64, 32), (200, 30, 7)),
        image_key="picture",
        prompt="¿Dónde está?\nAceptar",
        system=None,
        n=n,
        sampling=Sampling(temperature=temperature),
        max_tokens=64,
        seed=7,
        json_schema='{"type":"array"}',
        chat_template_kwargs="{}",
    )


def body_of(asked: EngineRequest, folder: Path) -> dict:
    write_requests([asked], folder / "requests.jsonl")
    return json.loads((folder / "requests.jsonl").read_text(encoding="utf-8"))["body"]


def test_a_peer_is_asked_what_our_engine_is_asked(tmp_path: Path) -> None:
    asked = request("a", n=3)
    body = body_of(asked, tmp_path)
    picture, text = body["messages"][0]["content"]
    png = base64.b64decode(picture["image_url"]["url"].partition("base64,")[2])
    assert Image.open(io.BytesIO(png)).convert("RGB").tobytes() == asked.image.tobytes()
    assert picture["uuid"] == "picture"
    assert text == {"type": "text", "text": asked.prompt}
    assert (body["n"], body["max_tokens"], body["temperature"], body["seed"]) == (3, 64, 0.0, 7)
    assert body["structured_outputs"] == {"json": asked.json_schema}


def test_an_unanswered_request_is_unequal_work() -> None:
    with pytest.raises(UnequalWorkError, match="beam left 1 of 2 requests unanswered"):
        check_all_answered("beam", [request("a"), request("b")], {"a": ["x"]})


def test_requests_that_repeat_another_are_unequal_work() -> None:
    with pytest.raises(UnequalWorkError, match="1 of 2 requests repeat another"):
        check_all_differ([request("a"), request("b")])


def test_a_request_nobody_asked_is_unequal_work() -> None:
    with pytest.raises(UnequalWorkError, match="answered 1 that nobody asked"):
        check_all_answered("beam", [request("a")], {"a": ["x"], "b": ["x"]})


def test_fewer_answers_than_wanted_are_unequal_work() -> None:
    with pytest.raises(UnequalWorkError, match="1 answers to a, not 8"):
        check_all_answered("datatrove", [request("a", n=8)], {"a": ["x"]})


def test_answers_to_other_questions_are_unequal_work() -> None:
    asked = [request(str(number)) for number in range(10)]
    ours = {one.request_id: ("right",) for one in asked}
    theirs = {one.request_id: ["wrong" if one.request_id < "3" else "right"] for one in asked}
    with pytest.raises(UnequalWorkError, match="raw and beam agree in 70%"):
        check_agreement(("raw", "beam"), asked, ours, theirs)


def test_sampled_answers_may_differ() -> None:
    asked = [request("a", temperature=0.7)]
    assert agreement(asked, {"a": ("x",)}, {"a": ("y",)}) is None


def test_engine_arguments_become_options() -> None:
    engine = {"enforce_eager": True, "use_tqdm_on_load": False, "max_num_seqs": 64, "dtype": "half"}
    limits = {"limit_mm_per_prompt": {"image": 1}}
    options = engine_options(VllmSettings("/", "m", "r", {**engine, **limits}))
    words = option_words(options)
    assert {"--enforce-eager", "--no-use-tqdm-on-load"} <= set(words)
    assert words[words.index("--max-num-seqs") + 1] == "64"
    assert words[words.index("--dtype") + 1] == "half"
    assert words[words.index("--limit-mm-per-prompt") + 1] == '{"image": 1}'


@pytest.mark.vllm
def test_vllm_knows_the_options_of_our_settings() -> None:
    settings = resolve_model(load_config(None, NOWHERE).model).vllm
    script = (
        "import sys; from vllm.entrypoints.launchers.run_batch import make_arg_parser as make; "
        "from vllm.utils.argparse_utils import FlexibleArgumentParser as Parser; "
        "print(make(Parser()).parse_args(sys.argv[1:]).max_num_seqs)"
    )
    words = [*option_words(engine_options(settings)), "-i", "none", "-o", "none"]
    variables = child_environment(settings)
    command = [sys.executable, "-c", script, *words]
    done = subprocess.run(command, check=False, env=variables, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1:] == [str(settings.engine["max_num_seqs"])], done.stderr


def test_the_device_does_one_thing_after_another() -> None:
    device = ServiceModel(screens_per_second=10, again=0.5, latency=1.0, seats=8)
    assert device.admit(0.0, "a") == pytest.approx(1.1)
    assert device.admit(0.0, "b") == pytest.approx(1.2)
    assert device.admit(0.0, "b") == pytest.approx(1.25)  # a further question on a picture
    assert device.admit(5.0, "c") == pytest.approx(6.1)


def test_who_finds_no_seat_waits_for_the_first_to_leave() -> None:
    device = ServiceModel(screens_per_second=10, latency=1.0, seats=1)
    assert device.admit(0.0, "a") == pytest.approx(1.1)
    assert device.admit(0.0, "b") == pytest.approx(2.2)


def test_a_peer_and_what_it_started_end_with_the_block(tmp_path: Path) -> None:
    script = (
        "import json, subprocess, sys\n"
        "under = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(json.dumps({'start': under.pid}), flush=True)\n"
        "sys.stdin.readline()\n"
    )
    log = tmp_path / "log"
    with started([sys.executable, "-c", script], {}, log) as process:
        under = int(Child("peer", process, log).start_seconds)
        assert psutil.pid_exists(under)
    assert process.returncode is not None
    assert not psutil.pid_exists(under)


def test_a_peer_that_dies_says_why(tmp_path: Path) -> None:
    words = [sys.executable, "-c", "raise SystemExit('no such model')"]
    log = tmp_path / "log"
    with started(words, {}, log) as process, pytest.raises(Exception, match="no such model"):
        Child("peer", process, log)


def test_the_command_explains_itself() -> None:
    words = [sys.executable, "-m", "tests.benchmark.peers", "--help"]
    root = Path(__file__).resolve().parents[3]
    said = subprocess.run(words, cwd=root, capture_output=True, text=True, check=True).stdout
    assert "Beam's RunInference" in said


def test_the_job_and_a_raw_call_do_the_same_with_the_stand_in(tmp_path: Path) -> None:
    job_of = workload_job(load_config(None, NOWHERE), WORKLOADS[1], 2, tmp_path)
    work = Work(job_of, composed_requests(job_of), tmp_path / "requests.jsonl")
    engine = ServiceEngine(ServiceModel(screens_per_second=1000, latency=0.01))
    systems = [System("raw", 0.0, partial(raw, engine)), System("job", 0.0, partial(job, engine))]
    found = compare(systems, work, "eight", 1, tmp_path)
    assert found.requests == 16
    assert found.agreements == {"raw": 1.0, "job": 1.0}
    assert [len(done.texts) for done in (*found.rounds["raw"], *found.rounds["job"])] == [16, 16]
