"""What the kernel offers and Python's library lacks: mounts, loop devices, btrfs, who started whom.

Nothing here knows of clusters.
"""
