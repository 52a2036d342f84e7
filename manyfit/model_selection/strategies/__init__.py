"""The ways to answer a group of settings."""
