"""Searches whose scores decide which settings they go on with."""
