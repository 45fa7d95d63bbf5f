"""Mixed precision, and numbers that do not fit into it."""
