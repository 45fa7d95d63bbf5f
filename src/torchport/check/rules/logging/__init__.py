"""What a run prints and writes down."""
