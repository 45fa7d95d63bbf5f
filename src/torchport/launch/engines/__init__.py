"""Engines: each renders a plan as the command lines and files of one way to run it, and runs nothing."""
