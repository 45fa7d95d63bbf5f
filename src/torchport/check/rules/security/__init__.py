"""Files and names that can run code of others."""
