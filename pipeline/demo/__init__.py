"""The demo: the whole job on bundled screens, with a tiny model that knows the drawn ones."""
