"""Splits of the rows, and the atoms from which all of them are merged."""
