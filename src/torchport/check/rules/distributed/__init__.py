"""Faults of several processes."""
