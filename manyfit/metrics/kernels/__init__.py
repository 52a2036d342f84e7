"""Metrics of many predictions in one call."""
