"""What is wrong with a job file, in plain words."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from pipeline.config import JobConfig

_Loc: TypeAlias = tuple[int | str, ...]

_SECRET_KEY = re.compile(
    r"(^|[_.-])(passw(or)?d|pwd|passphrase|secrets?|credentials?|bearer)([_.-]|$)"
    r"|(^|[_.-])(token|api_?key|access_?key(_id)?|private_?key|auth)$",
    re.IGNORECASE,
)
_USERINFO = re.compile(r"^[a-z][a-z0-9+.-]*://[^/@\s]+@", re.IGNORECASE)
_VARIABLE = re.compile(r"^[A-Z_][A-Z0-9_]*$")
_ENVIRONMENT = (
    "secrets are never read from a job file; put it in an environment variable "
    "(S3: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; Label Studio: LABEL_STUDIO_API_KEY, "
    "or the one named by label_studio.token_env; model hub: HF_TOKEN)"
)


def secret_problems(values: Mapping[str, object], prefix: str = "") -> list[str]:
    """Keys and addresses that hold a secret; the message never repeats the value.

    Args:
        values: a job as read from TOML, or a part of it.
        prefix: dotted name of the section that `values` is.
    """
    problems: list[str] = []
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            problems += secret_problems(value, f"{name}.")
        elif _SECRET_KEY.search(key) and isinstance(value, str):
            problems.append(f"`{name}` looks like a secret: {_ENVIRONMENT}")
        elif isinstance(value, str) and _USERINFO.match(value):
            problems.append(f"`{name}` has a name or password in its address: {_ENVIRONMENT}")
        elif key == "token_env" and isinstance(value, str) and not _VARIABLE.match(value):
            problems.append(
                f"`{name}` must be the name of an environment variable in capitals, "
                f"not the token itself: {_ENVIRONMENT}"
            )
    return problems


def number_problems(values: Mapping[str, object], prefix: str = "") -> list[str]:
    """Numbers that are none: TOML can write infinity, and no setting means anything by it.

    Args:
        values: a job as read from TOML, or a part of it.
        prefix: dotted name of the section that `values` is.
    """
    problems: list[str] = []
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            problems += number_problems(value, f"{name}.")
        elif isinstance(value, list):
            listed = {f"[{i}]": item for i, item in enumerate(value)}
            problems += number_problems(listed, name)
        elif isinstance(value, float) and not math.isfinite(value):
            problems.append(f"`{name}` is {value}, but must be a finite number")
    return problems


def describe_problems(error: ValidationError) -> list[str]:
    """Each problem of a validation as one line: key, value, what is valid."""
    return [_describe(problem) for problem in error.errors(include_url=False)]


def _describe(problem: ErrorDetails) -> str:
    loc = problem["loc"]
    kind = problem["type"]
    if kind == "extra_forbidden":
        return _unknown(loc)
    name = _dotted(loc)
    if kind == "missing":
        what = "section" if len(loc) == 1 else "key"
        return f"the {what} `{name}` is missing; {_needed(loc)}"
    return f"`{name}` is {_shown(problem['input'])}, but {_rule(kind, problem.get('ctx', {}))}"


def _unknown(loc: _Loc) -> str:
    *path, last = loc
    what = "section or key" if not path else "key"
    valid = _keys_of(tuple(path))
    near = difflib.get_close_matches(str(last), valid, n=1, cutoff=0.5)
    if near:
        return f"unknown {what} `{_dotted(loc)}`; did you mean `{_dotted((*path, near[0]))}`?"
    elsewhere = [name for name in _all_keys() if name.rpartition(".")[2] == last]
    if elsewhere:
        return f"unknown {what} `{_dotted(loc)}`; did you mean `{elsewhere[0]}`?"
    where = f"[{_dotted(tuple(path))}]" if path else "a job file"
    return f"unknown {what} `{_dotted(loc)}`; {where} has: {', '.join(valid)}"


def _needed(loc: _Loc) -> str:
    examples = {
        ("input",): 'it says what is read, for example [input] shards = ["screens/*.tar"]',
        ("input", "shards"): 'for example shards = ["screens/*.tar"]',
        ("output",): 'it says where the dataset goes, for example [output] dataset = "out"',
        ("output", "dataset"): 'for example dataset = "out"',
    }
    return examples.get(tuple(str(part) for part in loc), "it has no default")


def _shown(value: object) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except TypeError:
        text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _rule(kind: str, context: Mapping[str, Any]) -> str:
    """The broken rule in words; pydantic's error types are a documented, stable list."""
    fixed = {
        "int_type": "must be a whole number, without quotes",
        "int_parsing": "must be a whole number, without quotes",
        "int_from_float": "must be a whole number",
        "float_type": "must be a number, without quotes",
        "float_parsing": "must be a number, without quotes",
        "bool_type": "must be true or false, without quotes",
        "bool_parsing": "must be true or false, without quotes",
        "string_type": "must be text in quotes",
        "tuple_type": 'must be a list of texts, like ["a", "b"]',
        "dict_type": "must be a section of its own, like [section.name]",
        "model_type": "must be a section, like [section]",
        "model_attributes_type": "must be a section, like [section]",
    }
    bounds: dict[str, Callable[[], str]] = {
        "greater_than_equal": lambda: f"must be at least {context['ge']:g}",
        "less_than_equal": lambda: f"must be at most {context['le']:g}",
        "greater_than": lambda: f"must be greater than {context['gt']:g}",
        "less_than": lambda: f"must be less than {context['lt']:g}",
        "too_short": lambda: f"must have at least {context['min_length']} item(s)",
        "string_too_short": lambda: f"must have at least {context['min_length']} characters",
        "string_too_long": lambda: f"must have at most {context['max_length']} characters",
        "literal_error": lambda: f"must be one of {context['expected']}",
        "enum": lambda: f"must be one of {context['expected']}",
        "value_error": lambda: f"cannot be used: {context['error']}",
    }
    if kind in fixed:
        return fixed[kind]
    return bounds[kind]() if kind in bounds else f"is not valid ({kind.replace('_', ' ')})"


def _dotted(loc: _Loc) -> str:
    text = ""
    for part in loc:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.lstrip(".")


def _keys_of(path: _Loc) -> list[str]:
    model: type[BaseModel] = JobConfig
    for part in path:
        field = model.model_fields.get(str(part))
        if field is None or not isinstance(field.annotation, type):
            return []
        if not issubclass(field.annotation, BaseModel):
            return []
        model = field.annotation
    return list(model.model_fields)


def _all_keys() -> list[str]:
    return [f"{section}.{key}" for section in _keys_of(()) for key in _keys_of((section,))]
