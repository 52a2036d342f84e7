"""Families that are answered by iterations over all settings at once."""
