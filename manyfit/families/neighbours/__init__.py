"""Nearest neighbours: one query of the largest number, or the largest radius, answers all smaller ones."""
