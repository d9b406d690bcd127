"""The five Arrow tables: frozen, versioned, every field described. Changes only add fields."""

from __future__ import annotations

import pyarrow as pa

from schemas.fields import BOX_FIELDS as _BOX_FIELDS
from schemas.fields import STRINGS as _STRINGS
from schemas.fields import field as _field
from schemas.fields import required as _required
from schemas.review_tables import GOLD_FIELDS, REVIEW_FIELDS

SCHEMA_VERSION = "1.2.0"
"""Semantic version of the tables; the minor part grows when a field is added."""


def _table(name: str, fields: list[pa.Field]) -> pa.Schema:
    metadata = {"pantalla.table": name, "pantalla.schema_version": SCHEMA_VERSION}
    return pa.schema(fields, metadata=metadata)


_SIGNALS = pa.struct(
    [
        _field("agreement", pa.float64(), "share of the k samples in the winning region, 0..1"),
        _field("dispersion", pa.float64(), "0 = all in one region, 1 = scattered (SafeGround)"),
        _field("regions", pa.int32(), "separate regions the answers fall in"),
        _field("usable", pa.int32(), "samples that gave a location or said absent"),
        _field("total", pa.int32(), "samples asked for (k)"),
    ]
)
_ANSWER = pa.struct(
    [
        _field("text", pa.string(), "the answer as the model gave it, unchanged"),
        _field("finish_reason", pa.string(), "the engine's word: stop, length, ..."),
        _field("tokens", pa.int32(), "tokens generated"),
    ]
)
_CANDIDATE = pa.struct(
    [
        _field("sample", pa.int32(), "which of the k answers, from 0"),
        _field("status", pa.string(), "status of this answer alone"),
        _field("x", pa.float64(), "click x, original upright pixels"),
        _field("y", pa.float64(), "click y, original upright pixels"),
        _field("x1", pa.float64(), "left, original upright pixels"),
        _field("y1", pa.float64(), "top, original upright pixels"),
        _field("x2", pa.float64(), "right, original upright pixels"),
        _field("y2", pa.float64(), "bottom, original upright pixels"),
        _field("flags", _STRINGS, "what was repaired or noticed in this answer"),
    ]
)
_SAMPLING = pa.struct(
    [
        _field("k", pa.int32(), "answers asked for"),
        _field("temperature", pa.float64(), "0 = greedy"),
        _field("top_p", pa.float64(), "nucleus mass"),
        _field("top_k", pa.int32(), "0 = off"),
        _field("presence_penalty", pa.float64(), "0 = off"),
        _field("max_tokens", pa.int32(), "limit of one answer"),
        _field("seed", pa.int64(), "seed of the request, derived from sample_id"),
    ]
)
_SEEN = pa.struct(
    [
        _field("width", pa.int32(), "width of the image the model saw, px"),
        _field("height", pa.int32(), "height of the image the model saw, px"),
        _field("scale_x", pa.float64(), "seen px per original px, along x"),
        _field("scale_y", pa.float64(), "seen px per original px, along y"),
        _field("offset_x", pa.float64(), "seen x of the original's left edge"),
        _field("offset_y", pa.float64(), "seen y of the original's top edge"),
    ]
)
_TRUTH_BOX = pa.struct(
    [
        _field("x1", pa.float64(), "left, original upright pixels"),
        _field("y1", pa.float64(), "top, original upright pixels"),
        _field("x2", pa.float64(), "right, original upright pixels"),
        _field("y2", pa.float64(), "bottom, original upright pixels"),
        _field("role", pa.string(), "element class"),
        _field("label", pa.string(), "accessible name"),
    ]
)
_TRUTH = pa.struct(
    [
        _field("present", pa.bool_(), "whether the target is on the screen"),
        _field("boxes", pa.list_(_TRUTH_BOX), "true boxes; grounding: the target first"),
    ]
)

_MASK = pa.struct(
    [
        _field("x1", pa.float64(), "left, original upright pixels"),
        _field("y1", pa.float64(), "top, original upright pixels"),
        _field("x2", pa.float64(), "right, original upright pixels"),
        _field("y2", pa.float64(), "bottom, original upright pixels"),
    ]
)
ANNOTATIONS = _table(
    "annotations",
    [
        _required("sample_id", pa.string(), "hash of screen, query, prompt, model and sampling"),
        _required("element_index", pa.int32(), "element of the answer, from 0"),
        _required("element_count", pa.int32(), "elements of the answer; 0 when it has none"),
        _required("screen_id", pa.string(), "SHA-256 of the original image bytes"),
        _required("unit_id", pa.string(), "the unit of work that wrote this row"),
        _required("shard", pa.string(), "URI of the shard"),
        _required("member", pa.string(), "name of the image in the shard"),
        _required("query_kind", pa.string(), "grounding or localization"),
        _required("query_index", pa.int32(), "position among the screen's queries, from 0"),
        _required("query_origin", pa.string(), "sidecar, queries_file or enumerate"),
        _required("instruction", pa.string(), "what was asked for, Unicode NFC"),
        _field("instruction_raw", pa.string(), "as given, where it was not NFC"),
        _field("locale", pa.string(), "locale of the screen, from its sidecar"),
        _required("status", pa.string(), "ok, absent, no_answer, truncated, unparseable, ..."),
        _required("flags", _STRINGS, "what was repaired or noticed"),
        _required("route", pa.string(), "accept, review, audit or reject"),
        _required("probability", pa.float64(), "estimated probability of being right, 0..1"),
        _required("probability_source", pa.string(), "which score, and whether calibrated"),
        _required("signals", _SIGNALS, "what the k samples say about certainty"),
        *_BOX_FIELDS,
        _required("frame", pa.string(), "frame of all coordinates of the row: original_px"),
        _field("role", pa.string(), "element class"),
        _field("label", pa.string(), "text the model gave the element"),
        _required("image_width", pa.int32(), "width of the original upright image, px"),
        _required("image_height", pa.int32(), "height of the original upright image, px"),
        _required("seen", _SEEN, "how the image the model saw was made"),
        _field("candidates", pa.list_(_CANDIDATE), "each of the k answers, read; element 0 only"),
        _field("answers", pa.list_(_ANSWER), "everything the model said; element 0 only"),
        _required("prompt", pa.string(), "text shown to the model after the image"),
        _required("prompt_version", pa.string(), "version of the prompt in the profile"),
        _required("profile", pa.string(), "model profile"),
        _required("model", pa.string(), "checkpoint"),
        _required("model_revision", pa.string(), "revision or content hash of the checkpoint"),
        _required("model_licence", pa.string(), "licence of the checkpoint"),
        _required("engine", pa.string(), "inference engine"),
        _required("engine_version", pa.string(), "its version"),
        _required("sampling", _SAMPLING, "sampling settings"),
        _required("structured_output", pa.bool_(), "whether a grammar bound the answer"),
        _required("prompt_tokens", pa.int32(), "tokens of the prompt, image included"),
        _field("image_tokens", pa.int32(), "tokens of the prompt that stand for the image"),
        _required("output_tokens", pa.int32(), "tokens generated over all k answers"),
        _field("image_licence", pa.string(), "licence of the screen; null = unknown"),
        _field("truth", _TRUTH, "what the sidecar knows, never shown to the model; element 0 only"),
        _field("truth_hit", pa.bool_(), "whether the answer is right, where truth is known"),
    ],
)
SCREENS = _table(
    "screens",
    [
        _required("screen_id", pa.string(), "SHA-256 of the original image bytes"),
        _required("unit_id", pa.string(), "the unit of work that wrote this row"),
        _required("shard", pa.string(), "URI of the shard"),
        _required("shard_kind", pa.string(), "tar, zip, folder, webvoyager or parquet"),
        _required("member", pa.string(), "name of the image in the shard"),
        _field("byte_offset", pa.int64(), "offset of the image in a tar, of its header in a zip"),
        _field("row", pa.int64(), "row in a Parquet shard"),
        _required("byte_size", pa.int64(), "size of the original image bytes"),
        _required("image_format", pa.string(), "PNG, JPEG, WEBP, ..."),
        _required("image_mode", pa.string(), "pixel mode before conversion to RGB"),
        _required("width", pa.int32(), "upright width, px"),
        _required("height", pa.int32(), "upright height, px"),
        _required("orientation", pa.int32(), "EXIF orientation that was applied, 1 = none"),
        _field(
            "frame_count", pa.int32(), "frames, pages or pictures in the file; the first is used"
        ),
        _required("query_count", pa.int32(), "queries about this screen"),
        _required("flags", _STRINGS, "what was noticed"),
        _field("app", pa.string(), "application shown"),
        _field("app_version", pa.string(), "its version"),
        _field("licence", pa.string(), "licence of the screen; null = unknown"),
        _field("locale", pa.string(), "locale of the screen"),
        _field("html_lang", pa.string(), "language the page declares"),
        _field("page_title", pa.string(), "title of the page"),
        _field("url_path", pa.string(), "path of the page"),
        _field("color_scheme", pa.string(), "light or dark"),
        _field("device_pixel_ratio", pa.float64(), "physical px per CSS px"),
        _field("sidecar_encoding", pa.string(), "encoding of the sidecar; null = there is none"),
        _field("duplicate_of", pa.string(), "shard-uri#member of the first copy of these bytes"),
        _field("perceptual_hash", pa.string(), "PDQ hash, 64 hex digits; null = not asked for"),
        _field("near_duplicate_of", pa.string(), "shard-uri#member of the first look-alike"),
        _field("source", pa.string(), "where the screen was taken from; null = unknown"),
        _field("task", pa.string(), "task of the agent that took the screen; no query about it"),
        _field("step", pa.int32(), "step of that task, from 1"),
        _field("masks", pa.list_(_MASK), "what no person may see; null = nobody has said"),
    ],
)
REJECTS = _table(
    "rejects",
    [
        _required("unit_id", pa.string(), "the unit of work that wrote this row"),
        _required("shard", pa.string(), "URI of the shard"),
        _field("member", pa.string(), "name in the shard; null = the shard as a whole"),
        _required("stage", pa.string(), "plan, read, decode, compose or infer"),
        _required("reason", pa.string(), "machine code"),
        _required("detail", pa.string(), "what was seen, for a person"),
        _field("screen_id", pa.string(), "SHA-256 of the bytes, where there were any"),
        _field("sample_id", pa.string(), "the sample, where one was made"),
        _field("instruction", pa.string(), "the query, where there was one"),
    ],
)
REVIEWS = _table("reviews", REVIEW_FIELDS)
GOLD = _table("gold", GOLD_FIELDS)
TABLES: dict[str, pa.Schema] = {
    "annotations": ANNOTATIONS,
    "screens": SCREENS,
    "rejects": REJECTS,
    "reviews": REVIEWS,
    "gold": GOLD,
}
