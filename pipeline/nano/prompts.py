"""What nano is asked, in the words it was trained on."""

from __future__ import annotations

ASKING = "¿Dónde está?\n{target}"
LISTING = "¿Qué botones hay?"
"""The prompts of the two tasks; the profile `nano` has the same, and a test compares."""

TARGETS = ("{}", "el botón {}", "Pulse {}.", 'Pulse el botón "{}".', "Haga clic en {}.")
"""Ways to name a target: instructions with the button's label in them."""
