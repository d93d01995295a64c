"""What the kernel offers and Python's library lacks: mounts, loop devices, btrfs. Nothing here knows of clusters."""
