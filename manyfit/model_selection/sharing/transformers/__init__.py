"""Transformers whose fits and outputs are cached: wrapped steps, slices of columns, fits that hold smaller ones."""
