"""`mirror`: image sets into a registry, or onto a disk on the way there."""
