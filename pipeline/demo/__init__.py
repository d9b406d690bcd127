"""The demo: the whole job on a dozen bundled screens, with a model that knows nothing."""
