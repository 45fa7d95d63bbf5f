"""Stack: from what a project wants and what a machine can run to one stack, pinned with hashes."""
