"""Building binaries, images, releases and boot disks."""
