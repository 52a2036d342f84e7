"""Families that are answered from moments."""
