"""A sweep as a picture: throughput and latency over the requests in flight."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.bench.levels import Level
from pipeline.bench.sweep import Sweep
from schemas.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SUFFIXES = (".svg", ".png")


def check_files(out: Path | None, plot: Path | None) -> None:
    """Refuse files that could not be written, before anything is measured.

    Raises:
        ConfigError: if a folder is missing, or the plot's name ends in no known format.
    """
    for option, place in (("--out", out), ("--plot", plot)):
        if place is not None and not place.resolve().parent.is_dir():
            raise ConfigError(f"{option} {place}: there is no folder {place.parent}")
        if place is not None and place.is_dir():
            raise ConfigError(f"{option} {place} is a folder: name a file in it")
    if out is not None and out == plot:
        raise ConfigError(f"--out and --plot are both {out}: name two files")
    if plot is not None and plot.suffix.lower() not in SUFFIXES:
        raise ConfigError(f"--plot {plot}: end the name in {' or '.join(SUFFIXES)}")


def plot_sweep(sweep: Sweep, model: str, place: Path) -> None:
    """Write the plot.

    Args:
        sweep: at least one level.
        model: named in the title.
        place: a file; its suffix is the format.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.5), layout="constrained")
    rates, times = figure.subplots(1, 2)
    figure.suptitle(f"{model}, workload {sweep.workload.name}")
    levels = sweep.levels
    _draw(rates, levels, "tokens/s in and out", [level.tokens_per_second for level in levels])
    _draw(rates, levels, "tokens/s out", [level.output_tokens_per_second for level in levels])
    for place_of, name in enumerate(("p50", "p95", "p99")):
        _draw(times, levels, f"latency {name}", [level.latency[place_of] for level in levels])
    firsts = [level.first_token for level in levels]
    for place_of, name in enumerate(("p50", "p95")):
        known = [first[place_of] for first in firsts if first is not None]
        if len(known) == len(levels):
            _draw(times, levels, f"first token {name}", known, "--")
    _finish(rates, levels, "tokens/s", sweep)
    _finish(times, levels, "seconds", sweep)
    figure.savefig(place)


def _draw(
    axes: Axes, levels: Sequence[Level], name: str, values: Sequence[float], line: str = "-"
) -> None:
    axes.plot([level.in_flight for level in levels], values, line, marker="o", label=name)


def _finish(axes: Axes, levels: Sequence[Level], unit: str, sweep: Sweep) -> None:
    limit = sweep.max_num_seqs // sweep.workload.k
    if any(sweep.is_queued(level) for level in levels):
        axes.axvline(limit, color="grey", linestyle=":", label=f"{sweep.max_num_seqs} run at once")
    axes.set_xscale("log", base=2)
    places = [level.in_flight for level in levels]
    axes.set_xticks(places, [str(place) for place in places], rotation=45)
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set_xlabel("requests in flight")
    axes.set_ylabel(unit)
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
