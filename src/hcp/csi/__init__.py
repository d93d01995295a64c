"""Storage drivers of ours, spoken to by the Container Storage Interface (CSI).

`wire` is the protocol, `serving` a server on a socket, `identity` and `registration` what every driver answers alike.
Nothing here is imported by commands that are no driver: gRPC takes its time to start.
"""
