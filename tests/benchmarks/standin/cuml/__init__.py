"""A stand-in for cuML, whose estimators are scikit-learn's: to see that what asks for cuML's runs."""

__version__ = "none: a stand-in for tests"
