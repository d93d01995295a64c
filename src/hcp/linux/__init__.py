"""What the kernel offers and Python's library lacks: mounts, loop devices, btrfs, families of processes. Nothing here knows of clusters."""
