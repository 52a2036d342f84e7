"""Residuals of rows left out of a ridge fit, which follow from one fit of all rows."""
