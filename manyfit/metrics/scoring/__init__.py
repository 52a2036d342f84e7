"""Scorers, and the scores of all settings of a search."""
