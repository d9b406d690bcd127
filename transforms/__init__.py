"""The stages of the job as pure generators, and what they need: shards, storage, engines, parsers.

Imports `schemas` only; never `label_studio` or `pipeline`.
"""
