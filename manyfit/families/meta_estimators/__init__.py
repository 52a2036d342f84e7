"""Meta-estimators of one estimator, whose family answers for them: other targets, or one for each class."""
