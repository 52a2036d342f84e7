"""Kernel methods: one kernel matrix of a fold, or its decomposition, serves all settings."""
