"""What a pack did, as text for a person and as JSON for programs."""

from __future__ import annotations

import json
from dataclasses import asdict

from pipeline.pack import Packed, left_out_counts
from pipeline.report.words import byte_size, count_words
from pipeline.terminal import visible


def packed_text(packed: Packed) -> str:
    """Counts that add up, and an example of each reason for leaving something out."""
    lost = len(packed.left_out)
    size = byte_size(sum(tar.byte_size for tar in packed.tars))
    lines = [
        f"Tars     {count_words(len(packed.tars), 'tar')}, {size}",
        f"Files    {packed.found:,} found = {packed.packed:,} images packed + {lost:,} left out",
    ]
    for reason, count in left_out_counts(packed).items():
        first = next(item for item in packed.left_out if item.reason == reason)
        where = visible(first.member or "the folder", 200)
        lines.append(f"Left out {count:,} x {reason}: {where}: {visible(first.detail, 200)}")
    return "\n".join(lines)


def packed_json(packed: Packed) -> str:
    """Indented JSON; keys are the attributes of `Packed`."""
    return json.dumps(asdict(packed), indent=2, ensure_ascii=False)
