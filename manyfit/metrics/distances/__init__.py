"""Pairwise distances and kernels, tile by tile."""
