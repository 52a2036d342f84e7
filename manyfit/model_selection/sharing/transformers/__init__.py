"""Transformers fitted once: wrapped steps, slices of columns, and fits that hold smaller ones."""
