"""Runs scikit-learn as it is."""
