"""Image sets: what a site needs, brought from registries to a registry, or over a disk in between."""
