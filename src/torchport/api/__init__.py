"""The commands as functions: one file each, nouns in and nouns out."""
