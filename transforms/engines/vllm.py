"""The vLLM engine, offline. Only this module and `vllm_start` import vLLM.

Read against the source of vLLM 0.32 (`entrypoints/llm.py`, `entrypoints/common/offline.py`,
`v1/engine/llm_engine.py`):

- `LLM.enqueue_chat` renders one conversation and returns the engine's id of it, which is
  `<counter>-<8 random hex digits>`; outputs carry the part before the dash.
- `n > 1` fans out into children with seeds `seed + i`; `step` gives one output for all of them,
  in order, when the last one is done.
- Rendering raises before anything is queued, so a bad request leaves its neighbours alone.
- The image's `uuid` replaces the hash of its pixels in the processor cache and in prefix caching:
  it must differ wherever pixels differ, which `EngineRequest.image_key` promises.
"""

from __future__ import annotations

import json
import os
import threading
import time
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from schemas.caches import CacheCounts
from schemas.codes import RejectReason
from schemas.errors import EngineError
from schemas.records import Answer, Completion
from transforms.engines.base import EngineFactory, EngineInfo, EngineRequest
from transforms.engines.processes import deaf_children, engine_processes, kill, lost, reap
from transforms.engines.sentinel import guard
from transforms.engines.vllm_caches import ImageCaches
from transforms.engines.vllm_processor import image_token_id, loaded_processor, processor_rule
from transforms.engines.vllm_request import chat_messages, refused, timed_out
from transforms.engines.vllm_settings import (
    VllmSettings,
    prepare_environment,
    vllm_settings,
)
from transforms.engines.vllm_start import load_llm, release_memory

if TYPE_CHECKING:
    from vllm import LLM, RequestOutput, SamplingParams

__all__ = ["VllmEngine", "VllmSettings", "start_vllm", "vllm_factory", "vllm_settings"]

_ENGINE_SLOT = threading.Lock()
"""Held while an engine lives: two in one process abort it."""

MAX_IN_FLIGHT = 256
"""Requests in the engine at once at most: each waiting one holds its image's pixels in memory."""

QUEUE = 2
"""Requests in the engine for each that it can run at once. A grammar is compiled for a step before
its request can run: without a queue that is a step in which the request's place stays empty. With
nano and one question a screen the job reached 0.94 of raw vLLM instead of 0.88 (median of 5)."""

CLOSE_WAIT = 2.0
"""Seconds an idle engine has to end by itself; it may be deaf, see `deaf_children`."""

STEP_WAIT = 0.2
"""Longest wait for an engine in a process of its own, so that its silence can be seen."""

_BROKEN_FINISHES = frozenset({"error", "abort"})


def vllm_factory(settings: VllmSettings) -> EngineFactory:
    """A picklable call that starts the engine."""
    return partial(start_vllm, settings)


def start_vllm(settings: VllmSettings) -> VllmEngine:
    """Start the engine; the calling thread owns it from now on.

    Raises:
        ConfigError: if an engine argument is unknown or refused, saying which and what to do.
        EngineError: if the engine cannot start: another one lives in this process, the checkpoint
            cannot be loaded, or memory is short.
    """
    if not _ENGINE_SLOT.acquire(blocking=False):
        raise EngineError("this process has a vLLM engine already; close it first")
    with ExitStack() as undo:
        undo.callback(_ENGINE_SLOT.release)
        prepare_environment(settings)
        if settings.run_apart:
            guard()
        with deaf_children():
            llm = load_llm(settings)
        undo.callback(llm.llm_engine.engine_core.shutdown)
        engine = VllmEngine(llm, settings)
        undo.pop_all()
    return engine


class VllmEngine:
    """Answers requests with one `vllm.LLM`; made by `start_vllm`."""

    def __init__(self, llm: LLM, settings: VllmSettings) -> None:
        import vllm

        scheduler = llm.llm_engine.vllm_config.scheduler_config
        processor = loaded_processor(llm)
        self._llm: LLM | None = llm
        self._info = EngineInfo(
            engine="vllm",
            version=vllm.__version__,
            model=settings.name,
            revision=settings.revision,
            max_in_flight=min(QUEUE * scheduler.max_num_seqs, MAX_IN_FLIGHT),
            processor=processor_rule(*processor),
        )
        self._images: ImageCaches | None = ImageCaches(llm)
        self._image_token = image_token_id(processor[0])
        self._owner = (os.getpid(), threading.get_ident())
        self._processes = engine_processes()
        self._in_flight: dict[str, EngineRequest] = {}
        self._deadlines: dict[str, float] = {}
        self.steps = 0
        self._failed: list[Answer] = []
        self._death: str | None = None

    @property
    def info(self) -> EngineInfo:
        """What this engine is."""
        return self._info

    @property
    def caches(self) -> CacheCounts:
        """Since its start; nothing is known once it is closed."""
        return CacheCounts() if self._images is None else self._images.counts()

    @property
    def llm(self) -> LLM:
        """The engine itself, for those who measure it.

        Raises:
            EngineError: if it is dead or closed, or the calling thread is not its owner.
        """
        return self._alive()

    def submit(self, request: EngineRequest) -> None:
        """Render one request and queue it; one that cannot be rendered fails in `collect`.

        Raises:
            EngineError: if the engine is dead or closed, or the calling thread is not its owner.
        """
        from vllm.exceptions import VLLMClientError, VLLMServerError

        llm = self._alive()
        try:
            (key,) = llm.enqueue_chat(
                [chat_messages(request)],
                sampling_params(request),
                use_tqdm=False,
                chat_template_kwargs=json.loads(request.chat_template_kwargs),
            )
        # The processor wraps what goes wrong inside in ValueError, and raises RuntimeError when
        # image and placeholders do not match; neither leaves anything in the queue.
        except (VLLMClientError, ValueError, TypeError, RuntimeError) as error:
            self._failed.append(refused(request, error))
            return
        except VLLMServerError as error:
            raise self._died(error) from error
        name = key.rpartition("-")[0]
        self._in_flight[name] = request
        if self._images is not None:
            self._images.shown(request.n * (1 + len(request.earlier)))
        if request.timeout_seconds is not None:
            self._deadlines[name] = time.monotonic() + request.timeout_seconds

    def collect(self) -> list[Answer]:
        """One step of the engine, and what is finished after it.

        Raises:
            EngineError: if the engine is dead or closed, or the calling thread is not its owner.
        """
        llm = self._alive()
        answers, self._failed = self._failed, []
        if not self._in_flight:
            return answers
        if self._has_output(llm):
            try:
                outputs = llm.llm_engine.step()
            except Exception as error:  # whatever it is, no later step can be trusted
                raise self._died(error) from error
            self.steps += 1
            answers += [self._answer(output) for output in outputs if output.finished]
        return answers + self._give_up(llm)

    def _has_output(self, llm: LLM) -> bool:
        """Whether a step would not wait: in a process of its own, an engine may be silent for ever.

        vLLM 0.32 waits without end for an engine process that was killed.
        """
        waiting = getattr(llm.llm_engine.engine_core, "outputs_queue", None)
        if waiting is None:
            return True
        with waiting.not_empty:
            if waiting.not_empty.wait_for(lambda: bool(waiting.queue), STEP_WAIT):
                return True
        gone = lost(self._processes)
        if gone:
            raise self._died(RuntimeError(f"its process {gone[0]} has ended"))
        return False

    def _died(self, error: Exception) -> EngineError:
        self._death = f"{type(error).__name__}: {error}"
        return EngineError(
            f"vLLM died with {len(self._in_flight)} requests in flight: {self._death}"
        )

    def _give_up(self, llm: LLM) -> list[Answer]:
        """The answers to requests whose time is over; the engine forgets them."""
        now = time.monotonic()
        late = [name for name, until in self._deadlines.items() if now > until]
        if late:
            llm.llm_engine.abort_request(late)
        return [timed_out(self._forget(name)) for name in late]

    def _forget(self, name: str) -> EngineRequest:
        self._deadlines.pop(name, None)
        return self._in_flight.pop(name)

    def _answer(self, output: RequestOutput) -> Answer:
        request = self._forget(output.request_id)
        prompt = output.prompt_token_ids or ()
        prompt_tokens = len(prompt)
        shown = None if self._image_token is None else list(prompt).count(self._image_token)
        broken = [one.index for one in output.outputs if one.finish_reason in _BROKEN_FINISHES]
        if broken:
            return Answer(
                request.request_id,
                prompt_tokens=prompt_tokens,
                error_reason=RejectReason.ENGINE_FAILED,
                error_detail=f"the engine gave up on answers {broken} of {request.n}",
            )
        completions = tuple(
            Completion(one.text, one.finish_reason or "unknown", len(one.token_ids))
            for one in output.outputs
        )
        # With n > 1 this is the count of the child that ended last; the others differ by a block.
        cached = output.num_cached_tokens or 0
        return Answer(
            request.request_id,
            completions,
            prompt_tokens,
            cached,
            image_tokens=shown,
            # Only with `disable_log_stats = false`; with n > 1 of the child that ended last.
            first_token_seconds=output.metrics.first_token_latency if output.metrics else None,
        )

    def close(self) -> None:
        """Stop the engine, free its memory and reap its processes; may be called twice.

        Call it only when no thread is inside `submit` or `collect`.
        """
        llm, self._llm, self._images = self._llm, None, None
        if llm is None:
            return
        try:
            if self._in_flight:  # nobody wants their answers, and it may be stuck in one
                kill(self._processes)
            llm.llm_engine.engine_core.shutdown(timeout=CLOSE_WAIT)
            del llm
            release_memory()
        finally:
            reap(self._processes)
            _ENGINE_SLOT.release()

    def _alive(self) -> LLM:
        if self._owner != (os.getpid(), threading.get_ident()):
            raise EngineError(
                "a vLLM engine belongs to the thread that started it; this is another one"
            )
        if self._llm is None:
            raise EngineError("the vLLM engine is closed")
        if self._death is not None:
            raise EngineError(f"the vLLM engine is dead: {self._death}")
        return self._llm


def sampling_params(request: EngineRequest) -> SamplingParams:
    """How vLLM is to answer a request."""
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    sampling, schema = request.sampling, request.json_schema
    return SamplingParams(
        n=request.n,
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        top_k=sampling.top_k,
        presence_penalty=sampling.presence_penalty,
        max_tokens=request.max_tokens,
        seed=request.seed,
        skip_special_tokens=not request.keep_special_tokens,
        structured_outputs=None if schema is None else StructuredOutputsParams(json=schema),
    )
