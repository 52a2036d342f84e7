"""The implementations that a drop-in estimator can call: ours, cuML's, scikit-learn's array API."""
