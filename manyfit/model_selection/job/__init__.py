"""The job that a search hands to planning and running: estimator, candidates, data, splits, scorers."""
