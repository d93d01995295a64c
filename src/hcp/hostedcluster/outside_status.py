"""What a HostedCluster says of things outside of it: its proxy, and host names of the owner's. Pure."""

from __future__ import annotations

from hcp.api import conditions as c
from hcp.hostedcluster.observed import Names
from hcp.runtime.conditions import Verdict

_CA = "trustedCA"


def proxy(problems: tuple[str, ...]) -> Verdict:
    if not problems:
        return True, c.AS_EXPECTED, "Machines get the proxy as it is configured; whether it answers is theirs to see"
    reason = c.PROXY_CA_INVALID if all(_CA in one for one in problems) else c.INVALID_CONFIGURATION
    return False, reason, "; ".join(problems)


def names(found: Names) -> Verdict:
    if found.unknown is None:
        return "Unknown", c.STATUS_UNKNOWN, f"The DNS was not asked yet for {', '.join(found.hosts)}"
    if found.unknown:
        text = f"The DNS does not know {', '.join(found.unknown)}: make records that lead to the published services"
        return False, c.EXTERNAL_DNS_NOT_REACHABLE, text
    return True, c.AS_EXPECTED, f"The DNS knows {', '.join(found.hosts)}"
