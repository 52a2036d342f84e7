"""Collect results, warnings and progress, and report what was done."""
