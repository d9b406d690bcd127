"""Fields of the two tables that people make: `reviews`, and `gold` derived from them."""

from __future__ import annotations

import pyarrow as pa

from schemas.fields import BOX_FIELDS, CORNER_FIELDS, STRINGS, field, required

_TIME = pa.timestamp("us", tz="UTC")
_REVIEWED_BOX = pa.struct(
    [
        *CORNER_FIELDS,
        field("role", pa.string(), "element class; null = no class was chosen"),
        field("text", pa.string(), "text the reviewer gave the element"),
        field("origin", pa.string(), "prediction, prediction-changed or manual"),
        field("rotation", pa.float64(), "degrees as drawn; the corners are of the upright hull"),
        field("region", pa.string(), "id of the region on the server"),
    ]
)
_GOLD_BOX = pa.struct(
    [
        *CORNER_FIELDS,
        field("role", pa.string(), "element class"),
        field("text", pa.string(), "text of the element"),
    ]
)
_MODEL_ANSWER = pa.struct(
    [
        field("status", pa.string(), "ok, absent, no_answer, truncated, unparseable, ..."),
        *BOX_FIELDS,
        field("boxes", pa.list_(_GOLD_BOX), "all boxes of the answer"),
    ]
)

REVIEW_FIELDS = [
    required("sample_id", pa.string(), "the sample that was reviewed"),
    required("annotation_id", pa.int64(), "annotation on the Label Studio server"),
    required("verdict", pa.string(), "correct, corrected, absent, ...; none where none was given"),
    required("skipped", pa.bool_(), "whether the reviewer skipped the task"),
    *BOX_FIELDS,
    field("role", pa.string(), "element class the reviewer chose"),
    field("instruction", pa.string(), "corrected instruction"),
    field("reviewer", pa.string(), "reviewer's id on the server"),
    field("lead_time_s", pa.float64(), "seconds the reviewer took"),
    required("updated_at", _TIME, "last change on the server; of a deletion: when it was noticed"),
    required("review_id", pa.string(), "hash of server, project, annotation and version"),
    required("server", pa.string(), "address of the Label Studio server"),
    required("project_id", pa.int64(), "project on the server"),
    required("task_id", pa.int64(), "task on the server; SQLite reuses these ids"),
    field("unique_id", pa.string(), "UUID of the annotation; unlike annotation_id never reused"),
    required("created_at", _TIME, "when the annotation was made on the server"),
    required("deleted", pa.bool_(), "whether this version says that the annotation is gone"),
    required("query_kind", pa.string(), "grounding or localization"),
    required("frame", pa.string(), "frame of all coordinates of the row: original_px"),
    required("image_width", pa.int32(), "width of the original upright image, px"),
    required("image_height", pa.int32(), "height of the original upright image, px"),
    required("boxes", pa.list_(_REVIEWED_BOX), "every box as submitted; none where skipped"),
    field("label", pa.string(), "text the reviewer gave the element"),
    field("origin", pa.string(), "prediction, prediction-changed or manual, of x1..y2"),
    field("point_origin", pa.string(), "prediction, prediction-changed or manual, of x and y"),
    required("flags", STRINGS, "what was repaired or contradicts itself; see ReviewFlag"),
    required("foreign_regions", pa.int32(), "regions that are not of this interface"),
    field("result", pa.string(), "what the server held, as JSON; null of a deletion"),
    field("server_version", pa.string(), "Label Studio's version when this was pulled"),
    field("interface_version", pa.string(), "hash of the labelling interface, likewise"),
    field("guide_version", pa.string(), "hash of the reviewers' guide, likewise"),
]

GOLD_FIELDS = [
    required("sample_id", pa.string(), "the sample that people vouch for"),
    required("screen_id", pa.string(), "SHA-256 of the original image bytes"),
    required("shard", pa.string(), "URI of the shard"),
    required("member", pa.string(), "name of the image in the shard"),
    required("query_kind", pa.string(), "grounding or localization"),
    required("instruction", pa.string(), "what is asked for, as the reviewer corrected it"),
    required("instruction_asked", pa.string(), "what the model was asked for"),
    field("locale", pa.string(), "locale of the screen"),
    field("app", pa.string(), "application shown"),
    required("outcome", pa.string(), "accepted, corrected or absent"),
    *BOX_FIELDS,
    required("frame", pa.string(), "frame of all coordinates of the row: original_px"),
    field("role", pa.string(), "element class"),
    field("label", pa.string(), "text of the element"),
    required("boxes", pa.list_(_GOLD_BOX), "all boxes; of grounding the target alone"),
    required("image_width", pa.int32(), "width of the original upright image, px"),
    required("image_height", pa.int32(), "height of the original upright image, px"),
    required("reviewers", STRINGS, "ids of the people who agree, on the server"),
    required("annotation_ids", pa.list_(pa.int64()), "their annotations, in the same order"),
    required("review_ids", STRINGS, "their rows of `reviews`, in the same order"),
    required("verdicts", STRINGS, "their verdicts, in the same order"),
    required("reviewed_at", _TIME, "the latest of their changes"),
    required("answer", _MODEL_ANSWER, "what the model answered"),
    required("route", pa.string(), "accept, review, audit or reject"),
    required("probability", pa.float64(), "estimated probability of being right, 0..1"),
    required("probability_source", pa.string(), "which score, and whether calibrated"),
    required("profile", pa.string(), "model profile"),
    required("model", pa.string(), "checkpoint"),
    required("model_revision", pa.string(), "revision or content hash of the checkpoint"),
    required("model_licence", pa.string(), "licence of the checkpoint"),
    required("prompt_version", pa.string(), "version of the prompt in the profile"),
    field("image_licence", pa.string(), "licence of the screen; null = unknown"),
    required("flags", STRINGS, "what was repaired in the reviews"),
]
