"""Nouns → text, JSON, HTML: pure functions that return a string."""
