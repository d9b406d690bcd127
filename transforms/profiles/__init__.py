"""Bundled model profiles: TOML files, and the code that reads them."""
