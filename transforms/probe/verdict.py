"""Which convention explains the answers: settled only where chance and the others are ruled out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from schemas.geometry import Point, SeenImage
from transforms.parse.raw import RawNumbers
from transforms.probe.hypotheses import Hypothesis, Relation, hypotheses, unusualness
from transforms.probe.likelihood import (
    EXACT,
    WIDE,
    errors,
    fitted_spread,
    log_likelihood,
    most_of_one_answer,
)
from transforms.probe.scene import Target

MIN_READ = 6
"""Answers that must name one place; with fewer, chance cannot be ruled out."""

MIN_READ_SHARE = 0.4
"""Share of the questions that must have such an answer."""

MIN_INLIERS = 0.3
"""Share of the questions whose answer must be on or beside its target."""

SHUFFLES = 200
"""Times the answers of each screen are dealt to its targets at random, to see what chance does."""

SAME_PLACE = 0.01
"""Share of the diagonal within which two conventions point to the same place."""

_DECISIVE_ANSWERS = 1.6
"""Answers' worth of evidence that rules a convention out: more than any single one can give."""

Finding = Literal["settled", "cannot_tell"]


@dataclass(frozen=True, slots=True)
class Reply:
    """One question of the probe and what came back.

    Attributes:
        screen: number of its screen.
        numbers: what the answer says; None = it does not name exactly one place.
        shown: how the shown image was made.
        text: the raw answer, or why there is none.
    """

    screen: int
    target: Target
    shown: SeenImage
    numbers: RawNumbers | None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """How one convention did.

    Attributes:
        median_px: median distance to the middle of the target, in original pixels.
        median_share: the same as a share of the screen's diagonal.
        inliers: share of all questions whose answer is on or beside its target.
        evidence: log-likelihood below that of the best, in nats: 0 for the best.
    """

    hypothesis: Hypothesis
    median_px: float
    median_share: float
    inliers: float
    evidence: float
    relation: Relation


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the probe found.

    Attributes:
        reason: why it cannot tell; empty when settled.
        asked: questions; `read`: answers that name one place.
        standings: every convention, best first; empty when nothing could be read.
        chance: share of the random deals that did as well as the best convention.
        margin: evidence against the next convention that points elsewhere, in nats.
    """

    finding: Finding
    reason: str
    asked: int
    read: int
    standings: tuple[Standing, ...] = ()
    chance: float = 1.0
    margin: float = 0.0

    @property
    def candidates(self) -> tuple[Hypothesis, ...]:
        """The best convention and those that point to the same places, the most usual first.

        None unless settled.
        """
        if self.finding != "settled":
            return ()
        kept = ("best", "tied")
        found = (one.hypothesis for one in self.standings if one.relation in kept)
        return tuple(sorted(found, key=unusualness))

    def excludes(self, expected: Hypothesis) -> bool:
        """Whether the answers rule `expected` out: they mean something, and something else."""
        found = next((s.relation for s in self.standings if s.hypothesis == expected), None)
        return self.above_chance and found in (None, "worse")

    @property
    def above_chance(self) -> bool:
        """Whether any convention explains the answers better than chance does."""
        best = self.standings[0] if self.standings else None
        return best is not None and best.inliers >= MIN_INLIERS and self.chance <= 1 / SHUFFLES


def judge_replies(replies: Sequence[Reply], seed: int = 0) -> Verdict:
    """Compare all conventions on the replies of one probe.

    Args:
        replies: of every question, read or not.
        seed: of the random deals.
    """
    read = [reply for reply in replies if reply.numbers is not None]
    asked = len(replies)
    if len(read) < max(MIN_READ, MIN_READ_SHARE * asked):
        reason = f"only {len(read)} of {asked} answers name one place"
        return Verdict("cannot_tell", reason, asked, len(read))
    measured = _Measured(read)
    standings = measured.standings(asked)
    chance = measured.chance(seed)
    margin = min((s.evidence for s in standings if s.relation in ("worse", "open")), default=0.0)
    verdict = Verdict("settled", "", asked, len(read), standings, chance, margin)
    reason = _doubt(verdict)
    if not reason:
        return verdict
    return Verdict("cannot_tell", reason, asked, len(read), standings, chance, margin)


def _doubt(verdict: Verdict) -> str:
    """Why the best convention is not settled, or nothing."""
    best = verdict.standings[0]
    if best.inliers < MIN_INLIERS:
        return f"under every convention fewer than {MIN_INLIERS:.0%} of the answers are right"
    if not verdict.above_chance:
        return (
            f"no convention explains the answers better than chance: {verdict.chance:.0%} of "
            f"{SHUFFLES} random deals did as well"
        )
    rivals = [one for one in verdict.standings if one.relation == "open"]
    if rivals:
        return f"{best.hypothesis.name!r} and {rivals[0].hypothesis.name!r} do about as well"
    return ""


class _Measured:
    """Where every convention says that every answer points."""

    def __init__(self, read: Sequence[Reply]) -> None:
        chains = list(dict.fromkeys(reply.shown for reply in read))
        boxes = any(reply.numbers is not None and reply.numbers.box for reply in read)
        self.hypotheses = hypotheses(chains, boxes=boxes)
        self.points = np.array([[_place(h, reply) for reply in read] for h in self.hypotheses])
        self.targets = np.array([_xy(reply.target.box.center) for reply in read])
        self.diagonals = np.array([_diagonal(reply) for reply in read])
        self.reach = np.array([_reach(reply) for reply in read])
        self.screens = np.array([reply.screen for reply in read])
        self.distances = errors(self.points, self.targets, self.diagonals)

    def standings(self, asked: int) -> tuple[Standing, ...]:
        best = int(np.argmax(log_likelihood(self.distances, WIDE).sum(axis=1)))
        spread = fitted_spread(self.distances[best])
        likely = log_likelihood(self.distances, spread).sum(axis=1)
        best = int(np.argmax(likely))
        evidence = likely[best] - likely
        ruled_out = _DECISIVE_ANSWERS * most_of_one_answer(spread)
        return tuple(
            Standing(
                hypothesis=self.hypotheses[index],
                median_px=float(np.median(self.distances[index] * self.diagonals)),
                median_share=float(np.median(self.distances[index])),
                inliers=float((self.distances[index] <= self.reach).sum() / asked),
                evidence=float(evidence[index]),
                relation=self._relation(index, best, evidence[index], ruled_out),
            )
            for index in np.argsort(evidence, kind="stable")
        )

    def _relation(self, index: int, best: int, evidence: float, ruled_out: float) -> Relation:
        if index == best:
            return "best"
        if evidence >= ruled_out:
            return "worse"
        meant = self.distances[best] <= self.reach
        apart = errors(self.points[index], self.points[best], self.diagonals)[meant]
        return "tied" if apart.size and apart.max() <= SAME_PLACE else "open"

    def chance(self, seed: int) -> float:
        """Share of random deals of each screen's answers that do as well as the real ones."""
        generator = np.random.default_rng(seed)
        real = log_likelihood(self.distances, WIDE).sum(axis=1).max()
        as_well = 0
        for _ in range(SHUFFLES):
            dealt = errors(self.points, self.targets[self._deal(generator)], self.diagonals)
            as_well += log_likelihood(dealt, WIDE).sum(axis=1).max() >= real - 1e-9
        return float(as_well / SHUFFLES)

    def _deal(self, generator: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
        order = np.arange(len(self.screens))
        for screen in np.unique(self.screens):
            members = np.flatnonzero(self.screens == screen)
            order[members] = generator.permutation(members)
        return order


def _place(hypothesis: Hypothesis, reply: Reply) -> tuple[float, float]:
    assert reply.numbers is not None
    x, y = _xy(hypothesis.locate(reply.numbers, reply.shown))
    return min(max(x, -EXACT), EXACT), min(max(y, -EXACT), EXACT)


def _xy(point: Point) -> tuple[float, float]:
    return point.x, point.y


def _diagonal(reply: Reply) -> float:
    size = reply.shown.original
    return float(np.hypot(size.width, size.height))


def _reach(reply: Reply) -> float:
    """How far from its middle an answer is still right for a target: a share of the diagonal."""
    box = reply.target.box
    half = float(np.hypot(box.x2 - box.x1, box.y2 - box.y1)) / 2
    return max(WIDE, half / _diagonal(reply))
