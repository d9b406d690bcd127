"""Bundled model profiles: a TOML file each, named as the profile, and the code that reads them."""
