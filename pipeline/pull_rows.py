"""Reviews as rows of the `reviews` table."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from pipeline.pull_known import KnownReview, review_id
from schemas.geometry import Box, FrameKind
from schemas.reviews import NO_VERDICT, AskedSample, Review, ReviewedBox, Versions
from transforms.rows import Row


def review_row(review: Review, server: str, project_id: int, versions: Versions) -> Row:
    """One version of one review as a row."""
    ref, target = review.ref, review.target
    return {
        "sample_id": review.sample.sample_id,
        "annotation_id": ref.annotation_id,
        "verdict": review.verdict,
        "skipped": review.skipped,
        "x": review.point.x if review.point else None,
        "y": review.point.y if review.point else None,
        **_corners(target.box if target else None),
        "role": review.role.value if review.role else None,
        "instruction": review.instruction,
        "reviewer": ref.reviewer or None,
        "lead_time_s": ref.lead_time_s,
        "updated_at": ref.updated_at,
        "review_id": review_id(ref, deleted=review.deleted),
        "server": server,
        "project_id": project_id,
        "task_id": ref.task_id,
        "unique_id": ref.unique_id or None,
        "created_at": ref.created_at,
        "deleted": review.deleted,
        "query_kind": review.sample.kind.value,
        "frame": FrameKind.ORIGINAL_PX.value,
        "image_width": review.sample.size.width,
        "image_height": review.sample.size.height,
        "boxes": [_box(box) for box in review.boxes],
        "label": review.text,
        "origin": target.origin if target else None,
        "point_origin": review.point_origin,
        "flags": [flag.value for flag in review.flags],
        "foreign_regions": review.foreign_regions,
        "result": review.result,
        "server_version": versions.server or None,
        "interface_version": versions.interface or None,
        "guide_version": versions.guide or None,
    }


def deletion(known: KnownReview, sample: AskedSample, task_updated_at: datetime) -> Review:
    """The version of a review that says it is gone.

    Args:
        known: the last version seen.
        sample: the sample it was of.
        task_updated_at: the task's last change: a deletion leaves nothing else behind.
    """
    ref = replace(known.ref, updated_at=max(task_updated_at, known.ref.updated_at))
    return Review(ref=ref, sample=sample, verdict=NO_VERDICT, deleted=True)


def _box(box: ReviewedBox) -> Row:
    return {
        **_corners(box.box),
        "role": box.role.value if box.role else None,
        "text": box.text,
        "origin": box.origin,
        "rotation": box.rotation,
        "region": box.region,
    }


def _corners(box: Box | None) -> Row:
    corners = box.corners if box else (None, None, None, None)
    return dict(zip(("x1", "y1", "x2", "y2"), corners, strict=True))
