"""Answers to judged samples: parse, score, route, and compare with truth where there is any."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.codes import RejectReason, Stage
from schemas.geometry import FrameKind
from schemas.records import Answer, Reject
from transforms.evaluate import truth_hit
from transforms.parse import parse_answer
from transforms.route import RouteSettings, route_sample
from transforms.score import score_answers
from transforms.work import AnsweredUnit, Judged, JudgedUnit, Posed, Refused


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """How answers are read and decided upon.

    Attributes:
        frame: the convention of the model's coordinates.
    """

    frame: FrameKind
    route: RouteSettings


def judge(work: AnsweredUnit, settings: JudgeSettings) -> JudgedUnit:
    """Read, score and route every answer; a failed request becomes a reject of the unit."""
    judged: list[Judged] = []
    refused = list(work.refused)
    for posed in work.posed:
        answer = work.answers[posed.question.sample.sample_id]
        if answer.error_reason is not None:
            refused.append(_refused(work, posed, answer, answer.error_reason))
        elif not answer.completions:
            refused.append(_refused(work, posed, answer, RejectReason.ENGINE_FAILED))
        else:
            judged.append(_judge(posed, answer, settings))
    return JudgedUnit(work.unit, work.started, tuple(work.screens), tuple(judged), tuple(refused))


def _judge(posed: Posed, answer: Answer, settings: JudgeSettings) -> Judged:
    question, sample = posed.question, posed.question.sample
    parsed = [
        parse_answer(
            completion.text,
            completion.finish_reason,
            question.task.answer_format,
            settings.frame,
            sample.seen,
            sample.query.kind,
        )
        for completion in answer.completions
    ]
    scored = score_answers(sample.query.kind, parsed)
    return Judged(
        screen=posed.screen,
        question=question,
        answer=answer,
        scored=scored,
        route=route_sample(sample.sample_id, scored, settings.route),
        truth_hit=truth_hit(sample.query, scored),
    )


def _refused(work: AnsweredUnit, posed: Posed, answer: Answer, reason: RejectReason) -> Refused:
    sample = posed.question.sample
    reject = Reject(
        stage=Stage.INFER,
        reason=reason,
        detail=answer.error_detail or "the engine gave no answer at all",
        member=posed.screen.member.name,
        screen_id=sample.screen_id,
        sample_id=sample.sample_id,
        instruction=sample.query.instruction,
    )
    return Refused(work.unit, reject, is_query=True)
