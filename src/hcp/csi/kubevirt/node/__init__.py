"""The side of the driver that runs on every node of the guest. It has no credential and knows no API server."""
