"""What a pass knows about the default ingress of its cluster: whether there is one, and how it is reached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hcp.api import names
from hcp.api.paths import at
from hcp.controlplane.certs import LeafSecret
from hcp.controlplane.meta import obj, secret_data
from hcp.controlplane.params import Manifest, Params
from hcp.controlplane.services import EXTERNAL_DNS
from hcp.guest.ingress_plan import GuestIngress
from hcp.guest.platform.settings import apps_domain
from hcp.hostedcluster.scope import Scope
from hcp.kube.resources import SECRETS
from hcp.kubevirt import launchers
from hcp.pki import Leaf

# In the release; without it there is no default ingress.
IMAGE = "router"
LEAF = "ingress-crt"
CAPABILITY = "Ingress"
# What `hcp create cluster none` writes where no domain is given.
NOBODYS = "example.com"


def wanted(spec: Mapping[str, Any]) -> bool:
    return CAPABILITY not in (at(spec, "capabilities.disabled") or ())


def image(scope: Scope) -> str:
    return scope.params.images.get(IMAGE, "")


def leaf(domain: str) -> LeafSecret:
    """For every name one label below the domain, as browsers read a wildcard."""
    return LeafSecret(LEAF, "root-ca", Leaf(f"*.{domain}"[:64], (), (f"*.{domain}", domain), usage="server"))


def inside(scope: Scope) -> GuestIngress | None:
    """What the guest's own parts need to know; None while there is no certificate, and so no node."""
    made = scope.made.get(("Secret", LEAF)) or scope.cache.get(SECRETS, LEAF, scope.namespace)
    domain = apps_domain(scope.cluster)
    if made is None or not domain or not wanted(scope.spec) or not image(scope):
        return None
    data = secret_data(made)
    return GuestIngress(domain, image(scope), data["tls.crt"], data["tls.key"])


def passed_through(spec: Mapping[str, Any], management: str) -> bool:
    """Whether the router of the management cluster, with this apps domain, leads the cluster's domain here.

    Only names below its own domain: who writes a HostedCluster may not take any other, nor all of that one.
    """
    kubevirt = at(spec, "platform.kubevirt") or {}
    asked = bool(kubevirt.get("baseDomainPassthrough")) and not kubevirt.get("credentials")
    return asked and bool(management) and at(spec, "dns.baseDomain") == management and below(spec)


def below(spec: Mapping[str, Any]) -> bool:
    """Whether the cluster's names have a label of their own below the base domain."""
    return (spec.get("dns") or {}).get("baseDomainPrefix") != ""


def own_domain(spec: Mapping[str, Any], management: str) -> bool:
    """Whether names below its domain are for somebody else to lead here."""
    base = str(at(spec, "dns.baseDomain") or "")
    return base not in ("", NOBODYS) and not passed_through(spec, management)


def balancer(p: Params) -> str:
    """The Service in front of the machines, as the guides call it."""
    return f"{p.name}-apps"


def todo(p: Params, domain: str, port: int, service: Mapping[str, Any] | None, where: str = "") -> str:
    """What the owner of the domain has to do, to the letter; `where`: in which namespace, if not the hosted one."""
    name = balancer(p)
    if service is None or at(service, "spec.type") != "LoadBalancer":
        return (
            f"make a Service {name} of type LoadBalancer in namespace {where or p.namespace}, from port 443 to port "
            f"{port} of the machines, and then the DNS record *.{domain} for its address"
        )
    first = (at(service, "status.loadBalancer.ingress") or [{}])[0]
    if address := first.get("ip"):
        return f"make the DNS record: *.{domain}. IN {'AAAA' if ':' in address else 'A'} {address}"
    if host := first.get("hostname"):
        return f"make the DNS record: *.{domain}. IN CNAME {host}."
    return f"Service {name} has no address yet: the load balancer of the infra cluster has to give it one"


def named(p: Params, domain: str, where: str = "") -> Manifest:
    """Of the owner's Service: the name that external-dns makes a record for. Nothing else of it is ours."""
    metadata = {"name": balancer(p), "namespace": where or p.namespace, "annotations": {EXTERNAL_DNS: f"*.{domain}"}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata}


def passthrough(p: Params, spec: Mapping[str, Any], domain: str, port: int) -> list[Manifest]:
    """Service and Route in front of the machines: TLS goes through untouched to the node port of the router inside."""
    mark = str(at(spec, "platform.kubevirt.generateID") or p.infra_id)
    name = f"default-ingress-passthrough-service-{mark}"
    labels = {names.LABEL_INFRA_ID: p.infra_id}
    ports = [{"name": "https-443", "port": 443, "protocol": "TCP", "targetPort": port}]
    service = {"spec": {"type": "ClusterIP", "selector": {**labels, **launchers.LABELS}, "ports": ports}}
    route = {
        "spec": {
            "host": f"https.{domain}",
            "to": {"kind": "Service", "name": name, "weight": 100},
            "port": {"targetPort": "https-443"},
            "tls": {"termination": "passthrough", "insecureEdgeTerminationPolicy": "None"},
            "wildcardPolicy": "Subdomain",
        }
    }
    return [
        obj(p, "v1", "Service", name, service, labels=labels),
        obj(p, "route.openshift.io/v1", "Route", f"default-ingress-passthrough-route-{mark}", route, labels=labels),
    ]
