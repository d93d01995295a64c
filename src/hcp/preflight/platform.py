"""Storage, load balancers, Routes and addresses of the management cluster."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence

from hcp.api import names
from hcp.api.paths import annotations_of, at
from hcp.kube import Client, Resource
from hcp.kube import resources as r
from hcp.kube.errors import Forbidden, NotFound
from hcp.kubevirt.networks import cluster_networks
from hcp.preflight import cidrs, metallb
from hcp.preflight.result import Finding, fail, ok, unknown, warn
from hcp.runtime import workloads

# Names of embedded clusters carry their address, and only their own DNS reads it.
EMBEDDED_ZONE = ".hcp.test"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
INGRESS_CONTROLLERS = Resource("operator.openshift.io", "v1", "ingresscontrollers", "IngressController")


async def operator(client: Client) -> Finding:
    check = "Operator"
    if not await client.has(r.HOSTEDCLUSTERS):
        return fail(check, "not installed", "run hcp install")
    try:
        found = await client.get(r.DEPLOYMENTS, "operator", names.OPERATOR_NAMESPACE)
    except NotFound:
        return fail(check, f"there is no Deployment {names.OPERATOR_NAMESPACE}/operator", "run hcp install")
    except Forbidden as error:
        return unknown(check, f"not allowed to look into namespace {names.OPERATOR_NAMESPACE}", error.hint or "")
    available, wanted = workloads.available(found), workloads.wanted(found)
    if not wanted:
        return warn(check, "its Deployment is scaled to 0", "fine while you run hcp operator run; else scale it to 1")
    if not available:
        return fail(
            check,
            "no replica is available",
            f"kubectl -n {names.OPERATOR_NAMESPACE} describe deployment operator says why",
        )
    return ok(check, f"{available} of {wanted} replicas available")


async def storage(client: Client) -> Finding:
    check = "Default StorageClass"
    try:
        classes = await client.list(r.STORAGECLASSES)
    except Forbidden as error:
        return unknown(check, "not allowed to look at StorageClasses", error.hint or "")
    default = [one["metadata"]["name"] for one in classes if annotations_of(one).get(DEFAULT_CLASS) == "true"]
    hint = "mark one as default, or give --etcd-storage-class and --root-volume-storage-class"
    if not default:
        return fail(check, "there is none" if not classes else f"none of {len(classes)} classes is the default", hint)
    if len(default) > 1:
        return warn(check, f"several: {', '.join(sorted(default))}", "the newest is taken; leave only one")
    return ok(check, default[0])


async def load_balancer(client: Client) -> Finding:
    """Nothing says whether Services get addresses, except Services that have one."""
    check = "LoadBalancer addresses"
    try:
        services = [one for one in await client.list(r.SERVICES) if one["spec"].get("type") == "LoadBalancer"]
    except Forbidden as error:
        return unknown(check, "not allowed to look at Services", error.hint or "")
    served = [one for one in services if at(one, "status.loadBalancer.ingress")]
    if all(metallb.gave(one) for one in served) and await client.has(metallb.POOLS):
        return await metallb.finding(client, check, len(services), len(served))
    if served:
        return ok(check, f"{len(served)} of {len(services)} Services have one")
    hint = "install MetalLB or a cloud provider, or publish the API by Route or NodePort"
    if services:
        return fail(check, f"none of {len(services)} Services of type LoadBalancer has one", hint)
    return warn(check, "no Service of type LoadBalancer shows whether addresses are given", hint)


async def apps_domain(client: Client) -> str:
    try:
        config = await client.get(r.INGRESS_CONFIGS, "cluster")
    except (NotFound, Forbidden):
        return ""
    return str(at(config, "spec.domain") or "")


async def routes(client: Client) -> Finding:
    check = "Routes"
    if not await client.has(r.ROUTES):
        return fail(check, "the cluster serves no Routes", "hcp install adds a router")
    domain = await apps_domain(client)
    where = f"apps domain {domain}" if domain else "the apps domain is not published"
    if not await client.has(INGRESS_CONTROLLERS):
        return ok(check, f"{where}; wildcards are admitted")
    try:
        found = await client.get(INGRESS_CONTROLLERS, "default", "openshift-ingress-operator")
    except (NotFound, Forbidden):
        return warn(check, f"{where}; the wildcard policy cannot be read", "it has to be WildcardsAllowed")
    policy = at(found, "spec.routeAdmission.wildcardPolicy") or "WildcardsDisallowed"
    if policy != "WildcardsAllowed":
        return fail(
            check,
            f"{where}; the default IngressController has wildcard policy {policy}",
            "oc patch ingresscontroller -n openshift-ingress-operator default --type=merge "
            """-p '{"spec":{"routeAdmission":{"wildcardPolicy":"WildcardsAllowed"}}}'""",
        )
    return ok(check, f"{where}; wildcards are admitted")


async def name_resolution(client: Client) -> Finding:
    """Whether names under the apps domain can be looked up from here."""
    check = "DNS of the apps domain"
    domain = await apps_domain(client)
    if not domain:
        return unknown(check, "the apps domain is not published")
    name = f"hcp-doctor.{domain}"
    loop = asyncio.get_running_loop()
    try:
        found = await asyncio.wait_for(loop.getaddrinfo(name, 443, type=socket.SOCK_STREAM), 10)
    except (OSError, TimeoutError):
        if domain.endswith(EMBEDDED_ZONE):
            return ok(check, f"*.{domain} is answered inside embedded clusters only")
        return warn(check, f"*.{domain} cannot be looked up from this machine", f"add a wildcard DNS record *.{domain}")
    return ok(check, f"*.{domain} is {found[0][4][0]}")


async def addresses(client: Client, wanted: Sequence[str]) -> Finding:
    """The guest's ranges against those of the cluster its machines are in."""
    check = "Address ranges"
    taken = await cluster_networks(client)
    if not taken:
        return unknown(check, "the networks of the management cluster are not known", "compare them by hand")
    clashes = cidrs.overlaps(wanted, taken)
    if clashes:
        said = ", ".join(f"{mine} and {theirs}" for mine, theirs in clashes)
        return fail(
            check,
            f"these overlap: {said} (hosted and management cluster)",
            "choose others with --cluster-cidr and --service-cidr",
        )
    return ok(check, f"{', '.join(wanted)} are free; the management cluster uses {', '.join(taken)}")
