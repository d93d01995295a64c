"""The Route kind for clusters that have none: what OpenShift's users and tools write, checked the same way."""

from __future__ import annotations

from typing import Any

from hcp.api.crd import column, crd
from hcp.api.schema import MAX_NAME, Schema, array, int_or_string, integer, obj, rule, string, time
from hcp.router import hosts

GROUP = "route.openshift.io"
VERSION = "v1"
PORT_PATTERN = r"^[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?$"
# A certificate, a key, or a chain of some.
MAX_PEM = 65536


def _target(doc: str) -> Schema:
    fields = {
        "kind": string("Only Services can be targets.", enum=("Service", ""), default="Service"),
        "name": string("Name of the Service.", min_len=1, max_len=MAX_NAME),
        "weight": integer("Share of the connections, compared with the other targets.", minimum=0, maximum=256),
    }
    fields["weight"]["default"] = 100
    return obj(fields, doc, required=("kind", "name"))


def _tls() -> Schema:
    fields = {
        "termination": string("Who ends TLS.", enum=("edge", "reencrypt", "passthrough")),
        "certificate": string("Certificate shown to clients.", max_len=MAX_PEM),
        "key": string("Key of the certificate.", max_len=MAX_PEM),
        "caCertificate": string("CA of the certificate.", max_len=MAX_PEM),
        "destinationCACertificate": string("CA that the target's certificate is checked with.", max_len=MAX_PEM),
        "insecureEdgeTerminationPolicy": string(
            "What happens to plain HTTP.", enum=("Allow", "None", "Redirect", ""), default="None"
        ),
        "externalCertificate": obj({"name": string("Name of a TLS Secret.", max_len=MAX_NAME)}, "Certificate by name."),
    }
    rules = [
        rule(
            "self.termination != 'passthrough' || (!has(self.certificate) && !has(self.key))",
            "passthrough termination takes no certificate",
        )
    ]
    return obj(fields, "TLS for the host.", required=("termination",), rules=rules)


def spec() -> Schema:
    fields = {
        "host": string(
            "Name clients use; made from name and namespace when empty.",
            max_len=hosts.MAX_HOST,
            pattern=hosts.HOST_PATTERN,
        ),
        "subdomain": string(
            "First labels of the host when host is empty.", max_len=hosts.MAX_HOST, pattern=hosts.SUBDOMAIN_PATTERN
        ),
        "path": string("Paths that begin with this, for HTTP.", max_len=hosts.MAX_PATH, pattern=hosts.PATH_PATTERN),
        "to": _target("Where connections go."),
        "alternateBackends": array(_target("A further target."), "Further targets, by weight.", max_items=3),
        "port": obj(
            {"targetPort": int_or_string("Port of the target, by name or number.", pattern=PORT_PATTERN)},
            "Which port of the target.",
            required=("targetPort",),
        ),
        "tls": _tls(),
        "wildcardPolicy": string(
            "Subdomain takes every name beside the host.", enum=("None", "Subdomain", ""), default="None"
        ),
    }
    rules = [
        rule(
            "!has(self.tls) || self.tls.termination != 'passthrough' || !has(self.path)",
            "passthrough termination takes no path",
        )
    ]
    return obj(fields, "What is wanted.", required=("to",), rules=rules)


def status() -> Schema:
    condition = obj(
        {
            "type": string("Admitted."),
            "status": string("True, False or Unknown."),
            "reason": string("One word for machines."),
            "message": string("A sentence for people."),
            "lastTransitionTime": time("When the status last changed."),
        },
        required=("type", "status"),
    )
    ingress = obj(
        {
            "host": string("The host that was taken."),
            "routerName": string("Which router."),
            "routerCanonicalHostname": string("A name that leads to the router."),
            "wildcardPolicy": string("The policy that was taken."),
            "conditions": array(condition, keys=("type",)),
        }
    )
    return obj({"ingress": array(ingress, "What each router made of it.")}, "What is.")


def route_crd() -> dict[str, Any]:
    """The CustomResourceDefinition of Route."""
    return crd(
        group=GROUP,
        version=VERSION,
        kind="Route",
        plural="routes",
        doc="Makes a Service reachable from outside under a host name.",
        spec=spec(),
        status=status(),
        columns=[
            column("Host", ".status.ingress[0].host", "Name clients use"),
            column("Admitted", '.status.ingress[0].conditions[?(@.type=="Admitted")].status', "Whether it is served"),
            column("Services", ".spec.to.name", "Where connections go"),
            column("Port", ".spec.port.targetPort", "Port of the target"),
            column("Termination", ".spec.tls.termination", "Who ends TLS"),
            column("Wildcard", ".spec.wildcardPolicy", "Names beside the host"),
            column("Reason", '.status.ingress[0].conditions[?(@.type=="Admitted")].reason', "Why", wide=True),
        ],
    )
