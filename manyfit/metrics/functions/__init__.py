"""scikit-learn's metric functions for arrays on any device."""
