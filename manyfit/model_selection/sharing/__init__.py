"""Fit and score one setting, with fitted steps shared by the settings of a fold."""
