"""Reads source, and finds what would fail, crawl or differ on a GPU. Nothing of the user's is imported or run."""
