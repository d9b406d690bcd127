"""Where each sample goes: accepted, reviewed, accepted but audited, or rejected."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.codes import Route
from schemas.ids import unit_draw
from schemas.scored import Scored
from transforms.score import USABLE


@dataclass(frozen=True, slots=True)
class RouteSettings:
    """The decision rule.

    Attributes:
        threshold: probability at and above which a sample is accepted.
        audit_share: share of the accepted that is reviewed all the same.
        unusable: route of samples without geometry that are not "absent".
    """

    threshold: float
    audit_share: float
    unusable: Route = Route.REVIEW


def route_sample(sample_id: str, scored: Scored, settings: RouteSettings) -> Route:
    """The route of one sample.

    The audit draw depends on the sample id alone, so it is the same on every machine and on every
    run, and nobody can tell from a row's content whether it will be drawn.
    """
    if scored.status not in USABLE:
        return settings.unusable
    if scored.probability < settings.threshold:
        return Route.REVIEW
    drawn = unit_draw(sample_id, "audit") < settings.audit_share
    return Route.AUDIT if drawn else Route.ACCEPT
