"""Pictures of a search, in the form of scikit-learn's displays."""
