"""Write what the probe settled as a profile: the old file, with the frame and its evidence."""

from __future__ import annotations

import json
import re
from pathlib import Path

from pipeline.probe import ProbeReport
from schemas.errors import ConfigError
from schemas.profile import ModelProfile
from schemas.resize import AnyResizeRule
from transforms.probe.evidence import verdict_line
from transforms.probe.hypotheses import BoxForm, Hypothesis, Order
from transforms.profiles.load import parse_profile, profile_source

_TABLE = re.compile(r"^\[", re.MULTILINE)
_SOURCES = re.compile(r"^\[sources\][^\n]*\n", re.MULTILINE)


def write_profile(report: ProbeReport, source: str, target: Path) -> ModelProfile:
    """Write the probed profile and return it as it will be read.

    Comments and prompts of the old file stay. The new profile is named after its file.

    Args:
        report: a settled probe.
        source: name or path of the profile that was asked with.
        target: the new file, ending in `.toml`.

    Raises:
        ConfigError: if nothing is settled, the convention is one that no profile can state, or
            the file cannot be written.
    """
    found = _expressible(report)
    text = probed_text(profile_source(source), report, found, target.stem)
    profile = parse_profile(text, str(target))
    if target.suffix != ".toml":
        raise ConfigError(f"--write {target}: a profile's file ends in .toml")
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--write {target}: {error.strerror}") from error
    return profile


def probed_text(old: str, report: ProbeReport, found: Hypothesis, name: str) -> str:
    """The TOML text of the new profile."""
    first = _TABLE.search(old)
    cut = first.start() if first else len(old)
    head, tables = old[:cut], old[cut:]
    head = _set(head, "name", name)
    head = _set(head, "frame", found.frame.value)
    if found.rule is not None:
        head += f"{_rule_table(found.rule)}\n"
    note = f"probe = {json.dumps(_evidence(report), ensure_ascii=False)}\n"
    tables = re.sub(r"^probe = .*\n", "", tables, flags=re.MULTILINE)
    return head + _SOURCES.sub(lambda heading: heading.group() + note, tables, count=1)


def _expressible(report: ProbeReport) -> Hypothesis:
    """The settled convention, in the form a profile has keys for; the profile's own if it is one.

    A rule besides the profile's own can be written only where the profile has none.
    """
    candidates = report.verdict.candidates
    if not candidates:
        raise ConfigError(f"no profile is written: {verdict_line(report.verdict)}")
    if report.expected in candidates:
        return report.expected
    free = report.model.profile.resize is None
    for found in candidates:
        plain = found.order is Order.XY and found.box_form is BoxForm.CORNERS
        if plain and (found.rule is None or free):
            return found
    raise ConfigError(
        f"no profile is written: the model answers in {candidates[0].name!r}, which no profile can "
        "state; its answers need a parser of their own"
    )


def _set(head: str, key: str, value: str) -> str:
    """`head` with a top-level key set; added where it was not."""
    line = f"{key} = {json.dumps(value, ensure_ascii=False)}"
    pattern = re.compile(rf"^{key}\s*=.*$", re.MULTILINE)
    if pattern.search(head):
        return pattern.sub(lambda _: line, head, count=1)
    return f"{head.rstrip()}\n{line}\n\n"


def _rule_table(rule: AnyResizeRule) -> str:
    lines = [f"{key} = {json.dumps(value)}" for key, value in rule.model_dump().items()]
    return "\n".join(["[resize]", *lines, ""])


def _evidence(report: ProbeReport) -> str:
    model = f"{report.model.name} at {report.model.revision}"
    return f"pantalla probe, {model}, seed {report.seed}: {verdict_line(report.verdict)}"
