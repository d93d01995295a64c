"""`release`: what releases are made of, and publishing them."""
