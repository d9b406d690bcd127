"""Inference engines behind one small protocol."""
