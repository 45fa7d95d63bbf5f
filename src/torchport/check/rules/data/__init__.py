"""Data sets and loaders."""
