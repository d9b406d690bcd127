"""The colours of routes and marks, the same in PNG files, the report and the terminal.

Chosen to stay apart for people with red-green colour blindness (blue, orange, violet, grey), and
never the only sign: the route is always written too.
"""

from __future__ import annotations

from schemas.codes import Route

Rgb = tuple[int, int, int]

ROUTE_COLOURS: dict[str, Rgb] = {
    Route.ACCEPT: (0, 158, 115),
    Route.AUDIT: (86, 140, 233),
    Route.REVIEW: (230, 140, 20),
    Route.REJECT: (140, 140, 150),
}
TRUTH: Rgb = (204, 90, 190)
CANDIDATE: Rgb = (90, 190, 240)
UNKNOWN: Rgb = (140, 140, 150)


def route_colour(route: str) -> Rgb:
    """RGB of a route; grey for one that this version does not know."""
    return ROUTE_COLOURS.get(route, UNKNOWN)


def css(colour: Rgb) -> str:
    """`#rrggbb` of an RGB colour."""
    return "#{:02x}{:02x}{:02x}".format(*colour)
