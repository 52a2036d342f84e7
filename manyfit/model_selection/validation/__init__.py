"""cross_validate and the functions built on it."""
