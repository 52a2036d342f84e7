"""Searches over models that are trained further: by `partial_fit`, or from their last round."""
