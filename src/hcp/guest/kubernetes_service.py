"""The addresses behind the Service `kubernetes`: the advertise address, which each node's own proxy answers."""

from __future__ import annotations

from hcp.guest.objects import GuestParams, Manifest, obj


def objects(g: GuestParams) -> list[Manifest]:
    address, port = g.api_address
    https = {"name": "https", "port": port, "protocol": "TCP"}
    slice_body = {
        "addressType": "IPv6" if ":" in address else "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": [https],
    }
    labels = {"kubernetes.io/service-name": "kubernetes"}
    # The old kind too, for tools that read it; the label keeps the controller from making slices of it.
    skip = {"endpointslice.kubernetes.io/skip-mirror": "true"}
    subsets = {"subsets": [{"addresses": [{"ip": address}], "ports": [https]}]}
    return [
        obj("discovery.k8s.io/v1", "EndpointSlice", "kubernetes", slice_body, "default", labels),
        obj("v1", "Endpoints", "kubernetes", subsets, "default", skip),
    ]
