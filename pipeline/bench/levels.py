"""The figures of one level of a sweep: rates, percentiles, costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.bench.closed_loop import Finished, Window

LATENCY_SHARES = (50.0, 95.0, 99.0)
FIRST_TOKEN_SHARES = (50.0, 95.0)


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of the engine and the machine meanwhile.

    Attributes:
        running: most sequences in one batch, of `looks` that were taken.
        preemptions: sequences thrown out of the batch for want of key-value cache.
        host_bytes, device_bytes: peaks, see `MemoryPeaks`.
    """

    running: int
    looks: int
    preemptions: int
    host_bytes: int
    device_bytes: int | None


@dataclass(frozen=True, slots=True)
class Level:
    """N requests in flight.

    Attributes:
        requests: that were finished in `seconds`: N were in flight all that time.
        prompt_tokens: of these requests, images and what caches knew (`cached_tokens`) included;
            the answers to a request share one prompt, and the last one says what was known.
        latency: seconds from submission to the whole answer; percentiles `LATENCY_SHARES`.
        first_token: seconds to the first token, likewise `FIRST_TOKEN_SHARES`; with several
            answers a request, of the one that ended last; None = the engine does not say.
        waited: share of the time in which the next request was not decoded yet.
        submitting: share of the time in which vLLM rendered prompts in this process.
        whole_tokens_per_second: in and out, with ramp and drain.
        cost_per_million: of a million tokens, in and out; None = no price is known.
        cost_per_thousand: of a thousand samples: requests answered.
    """

    in_flight: int
    requests: int
    seconds: float
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    latency: tuple[float, ...]
    first_token: tuple[float, ...] | None
    waited: float
    submitting: float
    whole_tokens_per_second: float
    cost_per_million: float | None
    cost_per_thousand: float | None
    seen: Seen

    @property
    def tokens_per_second(self) -> float:
        """Tokens in and out, as `vllm bench serve` counts its total token throughput."""
        return (self.prompt_tokens + self.output_tokens) / self.seconds

    @property
    def output_tokens_per_second(self) -> float:
        """Tokens generated."""
        return self.output_tokens / self.seconds

    @property
    def requests_per_second(self) -> float:
        """Requests answered."""
        return self.requests / self.seconds

    @property
    def cached(self) -> float:
        """Share of the prompts' tokens that the prefix cache had."""
        return self.cached_tokens / max(self.prompt_tokens, 1)


def level_of(window: Window, seen: Seen, price_per_hour: float | None) -> Level:
    """The figures of a window.

    Args:
        window: at least one request was finished in it.
        seen: meanwhile.
        price_per_hour: of the machine.
    """
    done, seconds = window.finished, window.seconds
    tokens_in = sum(one.prompt_tokens for one in done)
    tokens_out = sum(one.output_tokens for one in done)
    spent = None if price_per_hour is None else price_per_hour * seconds / 3600
    return Level(
        in_flight=window.in_flight,
        requests=len(done),
        seconds=seconds,
        prompt_tokens=tokens_in,
        cached_tokens=sum(one.cached_tokens for one in done),
        output_tokens=tokens_out,
        latency=percentiles([one.latency for one in done], LATENCY_SHARES),
        first_token=_first_token(done),
        waited=window.waited / seconds,
        submitting=window.submitting / seconds,
        whole_tokens_per_second=window.whole_tokens / window.whole_seconds,
        cost_per_million=None if spent is None else spent / (tokens_in + tokens_out) * 1e6,
        cost_per_thousand=None if spent is None else spent / len(done) * 1e3,
        seen=seen,
    )


def _first_token(done: Sequence[Finished]) -> tuple[float, ...] | None:
    known = [one.first_token for one in done if one.first_token is not None]
    return percentiles(known, FIRST_TOKEN_SHARES) if len(known) == len(done) else None


def percentiles(values: Sequence[float], shares: Sequence[float]) -> tuple[float, ...]:
    """Percentiles, interpolated between neighbours."""
    import numpy as np

    return tuple(float(value) for value in np.percentile(values, shares))
