"""Examples that run on data shipped with scikit-learn."""
