"""Nano, the project's own tiny model: the screens it knows, its training, its checkpoint."""
