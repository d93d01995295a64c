"""Names of the guest: its domains, and a further name of its API."""

from __future__ import annotations

from hcp.api.parts import hostname
from hcp.api.schema import MAX_NAME, Schema, immutable, obj, rule, string

_LABEL = "[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?"
DOMAIN_PATTERN = rf"^$|^{_LABEL}(\.{_LABEL})*$"


def dns() -> Schema:
    fields = {
        "baseDomain": string(
            "Domain the guest's names are made under; empty lets the infra cluster's domain be used.",
            max_len=MAX_NAME,
            pattern=DOMAIN_PATTERN,
            rules=[rule("oldSelf == '' || self == oldSelf", "baseDomain is immutable once it is not empty")],
        ),
        "baseDomainPrefix": string(
            "What stands before the base domain: the cluster's name when unset, nothing when empty.",
            max_len=MAX_NAME,
            pattern=DOMAIN_PATTERN,
            rules=[immutable("baseDomainPrefix")],
        ),
        "publicZoneID": string("Public DNS zone.", min_len=1, max_len=258, rules=[immutable("publicZoneID")]),
        "privateZoneID": string("Private DNS zone.", min_len=1, max_len=265, rules=[immutable("privateZoneID")]),
    }
    rules = [
        rule(
            "!has(oldSelf.baseDomain) || oldSelf.baseDomain == '' || has(self.baseDomain)",
            "baseDomain is immutable once it is not empty",
        )
    ]
    return obj(fields, "Domains of the guest.", rules=rules)


def kube_apiserver_dns_name() -> Schema:
    found = hostname("A further name of the API, which gets a kubeconfig of its own.", min_len=None)
    return {**found, "pattern": rf"^$|{found['pattern']}"}
