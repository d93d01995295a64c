"""The side of the driver that runs on every node of the guest. It has no credential and knows no API server."""

# Open on the node itself while the kubelet knows the driver; asking there costs the node nothing, unlike a program
# that is started in the pod.
KNOWN_PORT = 2043
