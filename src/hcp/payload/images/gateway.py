"""Images of the Gateway API project's conformance tests: the tests themselves, and the server that they ask.

Made on request only, as `make conformance-gateway` does.
"""

from __future__ import annotations

from hcp.payload.image import Image, binaries, version_of

COMPONENT = "gateway-conformance"
SUITE, ECHO = "gateway.test", "echo-basic"


def gateway_images() -> list[Image]:
    version = version_of(COMPONENT)
    return [
        Image(COMPONENT, version, binaries(COMPONENT, SUITE, folder="/"), entrypoint=(f"/{SUITE}",)),
        Image(ECHO, version, binaries(COMPONENT, ECHO, folder="/"), entrypoint=(f"/{ECHO}",)),
    ]
