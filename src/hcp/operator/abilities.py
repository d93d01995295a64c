"""What the management cluster can do beyond what every supported one can."""

from __future__ import annotations

import logging

from hcp.api.versions import Version, parse_version
from hcp.errors import HcpError
from hcp.kube import Client

log = logging.getLogger(__name__)
# The first where a Service may prefer the endpoints of a caller's own node, without a feature gate.
SAME_NODE = Version(1, 34)


async def prefers_same_node(client: Client) -> bool:
    """Whether `trafficDistribution: PreferSameNode` is accepted there.

    Asked once per start: a management cluster that is upgraded drains the node that this process runs on. Where the
    version is not told or not understood, nothing is lost but the preference.
    """
    try:
        found = await client.raw("GET", "/version")
        return parse_version(str(found.get("gitVersion") or "")) >= SAME_NODE
    except HcpError as exc:
        log.info("the version of the management cluster is not known", extra={"error": str(exc)})
        return False
