"""Checks a dataset against itself, offline: `pantalla verify`."""

from pipeline.verify.findings import Finding, Verdict
from pipeline.verify.verify import verify_dataset

__all__ = ["Finding", "Verdict", "verify_dataset"]
