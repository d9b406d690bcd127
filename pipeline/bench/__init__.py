"""Benchmarks that anyone can run on the model of their job: what the job costs over raw vLLM."""
