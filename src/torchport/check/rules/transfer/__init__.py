"""Copies and waits that cost more than they need to."""
