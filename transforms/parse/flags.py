"""Every flag an answer can get, and which of them are repairs."""

from __future__ import annotations

from schemas.records import Parsed

REPAIRS: dict[str, str] = {
    "bare_call": "a tool call without its envelope",
    "bare_numbers": "numbers without their brackets",
    "clipped": "a coordinate up to 2 % outside the image, moved onto its edge",
    "corners_swapped": "corners in reverse order, sorted",
    "decimal_comma": "a decimal comma, where only one reading is possible",
    "invalid_unicode": "a lone surrogate or NUL in a label, replaced by U+FFFD",
    "label_cut": "a label longer than 512 characters, cut",
    "number_as_text": "numbers written as text",
    "other_form": "the form of another family, or a form that is not this format's",
    "other_key": "`bbox` or `point` in place of `bbox_2d` or `point_2d`",
    "point_from_box": "the click is the centre of the box",
    "raw_control_character": "a raw line break or tab inside a JSON string",
    "semicolons": "numbers between semicolons",
    "trailing_comma": "a comma before a closing bracket",
}
"""What was changed to read the answer, without changing its meaning."""

NOTICED: dict[str, str] = {
    "ambiguous_decimal": "commas could be decimal commas: the numbers have two readings",
    "dropped_degenerate": "an element without area was left out",
    "dropped_out_of_frame": "an element outside the image was left out",
    "dropped_unparseable": "an element without coordinates was left out",
    "duplicate_key": "one JSON key twice in an object",
    "extra_keys": "keys that the format does not have",
    "fenced": "the answer stood in a code fence",
    "items_before_cut": "elements of a list that the token limit cut",
    "named_numbers": "coordinates written as `x=.., y=..`",
    "nested_too_deep": "brackets nested deeper than any answer needs",
    "no_action": "a thought without an action",
    "no_coordinates": "no complete coordinates",
    "no_json": "nothing that is JSON",
    "non_finite": "NaN or Infinity",
    "other_action": "an action that is not a click",
    "point_outside_box": "a point outside its own box",
    "reasoning": "reasoning was left out",
    "refusal_like": "negative coordinates, in a format without a sign for absence",
    "repeated_answer": "the same answer several times",
    "repeated_items": "the same element several times, kept once",
    "replacement_character": "the detokenizer lost a character of a label",
    "several_answers": "answers that differ: none was chosen",
    "several_calls": "several tool calls",
    "shape_mismatch": "a point where a box was asked for, or a box where a point was",
    "text_around": "text around the answer",
    "token_limit": "the token limit ended a complete answer",
    "too_long": "longer than any answer that is read",
    "tool_call": "a tool call where boxes were asked for",
    "unclosed": "the text ends inside a bracket",
    "whitespace_loop": "a run of blanks that no answer holds",
}
"""What a reviewer or a report may want to know about an answer."""

FLAGS: dict[str, str] = REPAIRS | NOTICED
"""Flag -> what it says; a test compares it with what the parsers emit."""


def repairs(parsed: Parsed) -> tuple[str, ...]:
    """The flags of an answer that say what was repaired, sorted."""
    return tuple(flag for flag in parsed.flags if flag in REPAIRS)
