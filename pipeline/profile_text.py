"""A model profile as readable text."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline.terminal import output, show
from schemas.profile import Checkpoint, ModelProfile, Sampling


def print_profile(profile: ModelProfile, console: Console | None = None) -> None:
    """Print everything a profile says, ending with the source of each fact."""
    console = console or output()
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("Profile", profile.name)
    table.add_row("", Text(profile.description))
    if profile.warning:
        table.add_row("Warning", Text(profile.warning, style="yellow"))
    for number, checkpoint in enumerate(profile.checkpoints):
        table.add_row("Checkpoints" if number == 0 else "", Text(_checkpoint(checkpoint)))
    table.add_row("Frame", profile.frame.value if profile.frame else "unknown: set model.frame")
    if profile.resize is not None:
        rule = profile.resize
        table.add_row(
            "Resize",
            f"sides are multiples of {rule.factor}, {rule.min_pixels:,} to {rule.max_pixels:,} px",
        )
    table.add_row("Sampling", f"single answers: {_sampling(profile.greedy)}")
    table.add_row("", f"the k answers: {_sampling(profile.vote)}")
    for kind, task in sorted(profile.tasks.items()):
        version = f"prompt version {task.prompt_version}, answer format {task.answer_format}"
        bound = ", bound by a grammar" if task.structured else ""
        table.add_row(f"Asks {kind}", f"{version}{bound}, at most {task.max_tokens} tokens")
        table.add_row("", Text(task.prompt, style="dim"))
    for number, (fact, source) in enumerate(sorted(profile.sources.items())):
        table.add_row("Sources" if number == 0 else "", Text(f"{fact}: {source}"))
    show(table, console)


def _checkpoint(checkpoint: Checkpoint) -> str:
    words = {True: "commercial use allowed", False: "no commercial use", None: "use not stated"}
    revision = f" at {checkpoint.revision}" if checkpoint.revision else ""
    terms = f"{checkpoint.licence}, {words[checkpoint.commercial_use]}"
    return f"{checkpoint.id}{revision}: {terms} ({checkpoint.source})"


def _sampling(sampling: Sampling) -> str:
    if sampling.temperature == 0:
        return "greedy"
    return f"temperature {sampling.temperature:g}, top_p {sampling.top_p:g}"
