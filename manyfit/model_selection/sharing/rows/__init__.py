"""Which fits may read the same rows, and copies for those that may not."""
