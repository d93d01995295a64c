"""`payload`: binaries, images and releases."""
