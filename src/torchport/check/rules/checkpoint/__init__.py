"""What is saved, and whether another machine can load it."""
