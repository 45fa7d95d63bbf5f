"""What is known of cards; standard library only."""
