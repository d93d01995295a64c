"""The storage driver of an embedded cluster: volumes on its btrfs, shared, grown, snapshotted and cloned at no cost.

A volume of files is a subvolume; a block volume is a file in a subvolume, behind a loop device. Both are copied by a
snapshot of the subvolume, which takes no time and no room. There is one node: whoever wants a volume finds it there.
"""
