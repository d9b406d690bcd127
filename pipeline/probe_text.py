"""The report of a probe as text for people and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pipeline.probe import ProbeReport
from transforms.probe.evidence import evidence_table, example_lines, verdict_line


def report_lines(report: ProbeReport) -> Iterator[str]:
    """What was asked, the table of conventions, the verdict, and what it means for the profile."""
    verdict, model = report.verdict, report.model
    yield f"Model    {model.name}, revision {model.revision}"
    yield f"Profile  {model.profile.name}, {_expected(report)}"
    yield f"Asked    {verdict.asked} questions about drawn screens, seed {report.seed}"
    table = evidence_table(verdict, report.expected)
    if table:
        yield ""
        yield from table
    yield ""
    yield f"Verdict  {verdict_line(verdict)}"
    for mismatch in report.mismatches:
        yield f"Resize   {mismatch}"
    for line in report.coarse:
        yield f"Warning  the model sees little of large screens: {line}"
    if verdict.finding == "cannot_tell":
        for text in example_lines(report.examples):
            yield f"Answer   {text}"
    yield f"Result   {_meaning(report)}"


def report_json(report: ProbeReport) -> str:
    """The same as one JSON object."""
    verdict = report.verdict
    document = {
        "model": report.model.name,
        "revision": report.model.revision,
        "profile": report.model.profile.name,
        "expected": report.expected.frame.value if report.expected else None,
        "finding": verdict.finding,
        "reason": verdict.reason,
        "contradicted": report.contradicted,
        "asked": verdict.asked,
        "read": verdict.read,
        "chance": verdict.chance,
        "margin_nats": round(verdict.margin, 2),
        "mismatches": [str(mismatch) for mismatch in report.mismatches],
        "conventions": [
            {
                "name": one.hypothesis.name,
                "frame": one.hypothesis.frame.value,
                "order": one.hypothesis.order.value,
                "box_form": one.hypothesis.box_form.value,
                "rule": one.hypothesis.rule_name or None,
                "median_px": round(one.median_px, 2),
                "median_share": round(one.median_share, 5),
                "on_target": round(one.inliers, 4),
                "evidence_nats": round(one.evidence, 2),
                "relation": one.relation,
            }
            for one in verdict.standings
        ],
    }
    return json.dumps(document, ensure_ascii=False, indent=2)


def _expected(report: ProbeReport) -> str:
    if report.expected is None:
        return "which does not say in which frame the model answers"
    return f"which says that the model answers in {report.expected.name!r}"


def _meaning(report: ProbeReport) -> str:
    if report.mismatches:
        return "the profile is wrong about what the model sees: correct its resize rule"
    if report.contradicted:
        return "the profile is contradicted: a job with it is stopped at its start"
    if report.verdict.finding == "cannot_tell":
        return "nothing is settled: a job with this model is refused unless model.probe says so"
    if report.expected is None:
        frames = dict.fromkeys(one.frame.value for one in report.verdict.candidates)
        return f"set model.frame = {next(iter(frames))!r}, or write a profile with --write FILE"
    return "the profile agrees with the model"
