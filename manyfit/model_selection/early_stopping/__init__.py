"""Early stopping by the test part of each fold, for boosting estimators."""
