"""Writes results to a file, from which a later search continues."""
