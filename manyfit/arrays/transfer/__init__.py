"""Copies between host and device, each counted with a label."""
