"""Result folders of WebVoyager agents: `task*/screenshot<n>.png` and `interact_messages.json`.

The screens are read as any others. Of the messages only what says where a screen comes from is
taken: the agent's task, the step, the site. The task is about a whole session, so it is no query
about one screen, and none is made of it.
"""

from __future__ import annotations

import json
import re

from transforms.shards.names import base_name, folder_of
from transforms.source_text import decode_text

HEAD_BYTES = 2**20
"""Read of a messages file: the task comes before the first screenshot, which may be in there as
base64 and make the file a hundred times larger."""

LOG_NAME = "agent.log"
"""The agent's own log beside the screenshots: nothing of it is read."""

_STEP = re.compile(r"^screenshot(\d+)\.[a-z]+$", re.IGNORECASE)
_TASK_FOLDER = re.compile(r"^task(.+?)(?:--\d+)?$", re.IGNORECASE)
_STRING = r'"text"\s*:\s*("(?:[^"\\]|\\.)*")|"content"\s*:\s*("(?:[^"\\]|\\.)*")'
_TEXTS = re.compile(_STRING)
_TASK = re.compile(r"Now given a task:\s*(.+?)\s*Please interact with\s+(\S+)", re.DOTALL)


def screen_facts(member: str, head: bytes) -> bytes:
    """What is known of one screenshot, as a sidecar.

    Args:
        member: name of the screenshot in the shard.
        head: the first bytes of the messages beside it, at most `HEAD_BYTES`.
    """
    facts: dict[str, str | int] = {}
    folder = folder_of(member).rstrip("/")
    app = _TASK_FOLDER.match(base_name(folder))
    if app:
        facts["app"] = app[1]
    step = _STEP.match(base_name(member))
    if step:
        facts["step"] = int(step[1])
    text, _ = decode_text(head)
    for found in _TEXTS.finditer(text):
        task = _TASK.search(_unquoted(found[1] or found[2]))
        if task:
            facts["task"], facts["source"] = task[1], task[2]
            break
    return json.dumps(facts, ensure_ascii=False).encode()


def _unquoted(literal: str) -> str:
    """The text of a JSON string; empty where it is none."""
    try:
        return str(json.loads(literal, strict=False))
    except ValueError:
        return ""
