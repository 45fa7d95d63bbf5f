"""Runs that differ from each other."""
