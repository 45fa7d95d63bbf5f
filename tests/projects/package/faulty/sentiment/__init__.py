"""Tells good reviews from bad ones."""
