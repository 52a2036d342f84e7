"""The search classes."""
