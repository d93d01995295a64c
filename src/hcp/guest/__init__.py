"""What is kept true inside a hosted cluster."""
