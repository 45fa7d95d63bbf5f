"""Makes a project run on a GPU, and proves that it computes what it did."""
