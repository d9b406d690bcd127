"""Reads a job file: strict TOML, `--set` overrides, and every problem told at once."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from pydantic import ValidationError

from pipeline.config import JobConfig
from pipeline.config_paths import resolve_paths
from pipeline.config_problems import describe_problems, number_problems, secret_problems
from schemas.errors import ConfigError

Toml: TypeAlias = "str | int | float | bool | list[Toml] | dict[str, Toml]"
Key: TypeAlias = tuple[str, ...]


def read_config(path: Path | None, overrides: Sequence[str] = ()) -> JobConfig:
    """Read a job file and apply `--set key=value` overrides.

    Relative paths of the file are relative to the file's folder, those of overrides to the
    working directory.

    Args:
        path: a TOML file, or None to build the job from overrides alone.
        overrides: `section.key=value` texts; values are TOML, or plain text where they are not.

    Raises:
        ConfigError: naming the file, the key and its value, all problems together.
    """
    source = str(path) if path is not None else "the command line"
    values: dict[str, Toml] = {} if path is None else _parse_file(path)
    refused = secret_problems(values) + number_problems(values)
    if path is not None:
        resolve_paths(values, path.resolve().parent)
    given = _parse_overrides(overrides)
    for key, value in given.items():
        refused += secret_problems(_nested(key, value)) + number_problems(_nested(key, value))
    if refused:
        raise ConfigError(_join(source, refused))
    for key, value in given.items():
        resolved = _nested(key, value)
        resolve_paths(resolved, Path.cwd())
        _set(values, key, _get(resolved, key))
    return _validate(values, source, frozenset(given))


def _parse_file(path: Path) -> dict[str, Toml]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such job file") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not UTF-8 text (byte {error.start})") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: is not valid TOML: {error}") from error


def _parse_overrides(overrides: Sequence[str]) -> dict[Key, Toml]:
    given: dict[Key, Toml] = {}
    for text in overrides:
        dotted, equals, value = text.partition("=")
        key = tuple(part.strip() for part in dotted.split("."))
        if not equals or len(key) < 2 or not all(key):
            raise ConfigError(
                f"--set {dotted}: write it as section.key=value, for example --set sampling.k=3"
            )
        given[key] = _toml_value(value.strip())
    return given


def _toml_value(text: str) -> Toml:
    # The value stands alone on its line: a text that smuggles in a second key is plain text.
    try:
        parsed: dict[str, Toml] = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return parsed["value"] if len(parsed) == 1 else text


def _nested(key: Key, value: Toml) -> dict[str, Toml]:
    inner: Toml = value
    for part in reversed(key):
        inner = {part: inner}
    assert isinstance(inner, dict)
    return inner


def _get(values: dict[str, Toml], key: Key) -> Toml:
    found: Toml = values
    for part in key:
        assert isinstance(found, dict)
        found = found[part]
    return found


def _set(values: dict[str, Toml], key: Key, value: Toml) -> None:
    target = values
    for part in key[:-1]:
        inner = target.setdefault(part, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"--set {'.'.join(key)}: `{part}` is a value, not a section")
        target = inner
    target[key[-1]] = value


def _validate(values: dict[str, Toml], source: str, overridden: frozenset[Key]) -> JobConfig:
    try:
        return _model(values)
    except ValidationError as error:
        if not _reread_as_text(values, error, overridden):
            raise ConfigError(_join(source, describe_problems(error))) from None
    try:
        return _model(values)
    except ValidationError as error:
        raise ConfigError(_join(source, describe_problems(error))) from None


def _model(values: dict[str, Toml]) -> JobConfig:
    # Through JSON, so that strict mode still takes lists for tuples and text for codes.
    return JobConfig.model_validate_json(json.dumps(values, default=str), strict=True)


def _reread_as_text(
    values: dict[str, Toml], error: ValidationError, overridden: frozenset[Key]
) -> bool:
    """`--set model.revision=123` means text, `--set input.shards=a.tar` a list of one."""
    changed = False
    for problem in error.errors():
        key = tuple(str(part) for part in problem["loc"])
        if key not in overridden:
            continue
        value = _get(values, key)
        if problem["type"] == "string_type" and isinstance(value, int | float):
            _set(values, key, json.dumps(value))
            changed = True
        elif problem["type"] == "tuple_type" and isinstance(value, str):
            _set(values, key, [value])
            changed = True
    return changed


def _join(source: str, problems: list[str]) -> str:
    if len(problems) == 1:
        return f"{source}: {problems[0]}"
    lines = "\n".join(f"  - {problem}" for problem in problems)
    return f"{source}: {len(problems)} problems\n{lines}"
