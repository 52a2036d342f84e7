"""Encodings: what steps make of all rows at once, of which each fold has a selection or a linear map."""
