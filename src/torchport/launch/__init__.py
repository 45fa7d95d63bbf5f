"""Launch: a plan becomes running processes, followed until they end."""
