"""Paths and settings of one machine."""
