"""The searches of ``python -m benchmarks everyday``."""
