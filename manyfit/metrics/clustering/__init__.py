"""Scores of clusterings."""
