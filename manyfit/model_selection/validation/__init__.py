"""cross_validate and related functions."""
