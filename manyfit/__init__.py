"""Fit many scikit-learn models at once: the work that the fits of a search share is done once."""

__version__ = "0.1.0"
