"""Shell scripts, container files, requirements and settings."""
