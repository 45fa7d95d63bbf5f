"""A stand-in for the legacy torchtext API: fields, examples and a bucket iterator."""
