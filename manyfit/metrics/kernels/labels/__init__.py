"""Metrics of labels: codes, counts, precision and recall."""
