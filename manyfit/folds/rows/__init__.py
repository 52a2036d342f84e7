"""Validate X and y, and index their rows."""
