"""Numbers and codes as people read them, the same in the summary and on the page."""

from __future__ import annotations

import math

from pipeline.report.accuracy import Share

STATUS_WORDS: dict[str, str] = {
    "ok": "located",
    "absent": "said to be absent",
    "no_answer": "no answer",
    "truncated": "answer cut off",
    "unparseable": "answer not readable",
    "out_of_frame": "outside the picture",
    "degenerate": "box or point without sense",
}
ROUTE_WORDS: dict[str, str] = {
    "accept": "accepted",
    "audit": "accepted, drawn for audit",
    "review": "to be reviewed",
    "reject": "rejected",
}


def duration(seconds: float) -> str:
    """`41 s`, `3 min 05 s`, `2 h 07 min`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min"


def byte_size(size: int) -> str:
    """Binary units, three digits at most before the point: `3.1 GiB`."""
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def number(value: float | None, digits: int = 1) -> str:
    """Thousands separated by commas; `n/a` where there is none."""
    if value is None:
        return "n/a"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}"


def percent(value: float | None) -> str:
    """A share as a percentage with one decimal; `n/a` where there is none."""
    return "n/a" if value is None else f"{value * 100:.1f} %"


def money(value: float | None, currency: str) -> str:
    """Two decimals, or three significant digits below one: `0.00127 USD`."""
    if value is None:
        return "n/a"
    if value >= 1 or value == 0:
        return f"{value:,.2f} {currency}"
    return f"{value:.{2 - math.floor(math.log10(value))}f} {currency}"


def share_text(share: Share) -> str:
    """`12 of 61 right: 19.7 % (95 % interval 10.6 % to 31.8 %)`."""
    if share.value is None:
        return "nothing to compare with"
    interval = f"95 % interval {percent(share.low)} to {percent(share.high)}"
    return f"{share.hits:,} of {share.judged:,} right: {percent(share.value)} ({interval})"


def count_words(number_of: int, one: str, many: str = "") -> str:
    """`1 screen`, `2 screens`."""
    return f"{number_of:,} {one if number_of == 1 else many or one + 's'}"
