"""Parts of torch that are gone, or will be."""
