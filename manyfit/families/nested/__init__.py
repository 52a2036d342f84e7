"""Families of settings that nest: one fit of the largest setting holds the fits of the smaller ones."""
