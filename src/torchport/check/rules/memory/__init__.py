"""Memory that grows, and training loops that do not train."""
