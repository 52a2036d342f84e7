"""From a search to its plan: which fits share which work."""
