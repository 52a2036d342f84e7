"""Read-only views and copies of rows, and the estimators that may read shared ones."""
