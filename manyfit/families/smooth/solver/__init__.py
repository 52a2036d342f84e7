"""Minimise many smooth objectives over one X: losses, L-BFGS, preconditioner, penalty path."""
