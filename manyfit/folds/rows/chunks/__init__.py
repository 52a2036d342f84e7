"""Rows that lie outside memory, and are read whole chunks at a time."""
