"""What is checked against the management cluster before `create cluster` writes anything."""

from __future__ import annotations

import asyncio
from typing import Any

from hcp.api import names
from hcp.api.paths import at
from hcp.cli.create.options import ClusterOptions
from hcp.cli.engine.command import Call
from hcp.cli.engine.terminal import warn
from hcp.errors import HcpError
from hcp.kube import Client, Resource, untrusted_kubeconfig
from hcp.kube.errors import Forbidden, NotFound
from hcp.kube.resources import (
    CONFIGMAPS,
    HOSTEDCLUSTERS,
    NAMESPACES,
    NODEPOOLS,
    NODES,
    ROUTES,
    SECRETS,
    SERVICES,
    STORAGECLASSES,
)

Object = dict[str, Any]
MANAGED_CLUSTERS = Resource("cluster.open-cluster-management.io", "v1", "managedclusters", "ManagedCluster", False)
MANAGED_LABEL = "cluster.open-cluster-management.io/managedCluster"
INFRA_PATIENCE = 15
GIVE = "give one with --api-server-address (platform None: --external-api-server-address)"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


async def check(client: Client, call: Call, options: ClusterOptions) -> Object | None:
    """Refuses what would disturb others or cannot work; returns the HostedCluster a half-way run left, if any."""
    if call.switch("version-check"):
        await version(client)
    existing = await unique_name(client, call, options)
    await managed_cluster(client, options.namespace)
    await trust_bundle(client, options, existing)
    await storage_classes(client, options)
    if options.platform == names.PLATFORM_KUBEVIRT:
        await architecture(client, options)
        await infra(client, options)
    if options.api_server_by_route:
        await router(client)
    if options.publishing == "NodePort" and not options.api_server_address:
        options.api_server_address = await node_address(client)
    return existing


async def version(client: Client) -> None:
    """`--version-check`: this client and the operator must be of one version and one source."""
    from hcp.build_info import identity

    found = await client.get_or_none(CONFIGMAPS, names.SUPPORTED_VERSIONS, names.OPERATOR_NAMESPACE)
    server = ((found or {}).get("data") or {}).get(names.SERVER_VERSION_KEY, "")
    if not server:
        raise HcpError(
            "version validation failed: the operator's version is not known",
            cause=f"ConfigMap {names.OPERATOR_NAMESPACE}/{names.SUPPORTED_VERSIONS} has no {names.SERVER_VERSION_KEY}",
            hint="the operator writes it when it starts: is it installed and running? Or leave --version-check out",
        )
    own = identity()
    if server != own:
        raise HcpError(
            "version validation failed: version mismatch between CLI and Operator",
            cause=f"CLI {own}, Operator {server}",
            hint="use the client of the operator's version, upgrade with hcp install, or leave --version-check out",
        )


async def unique_name(client: Client, call: Call, options: ClusterOptions) -> Object | None:
    """A cluster's name has to be unique in the whole management cluster: guests' DNS names are made from it."""
    try:
        clusters = await client.list(HOSTEDCLUSTERS)
    except NotFound as error:
        raise HcpError(
            "the management cluster does not know HostedClusters",
            cause=error.cause,
            hint=f"install the operator first: {call.prog} install",
        ) from None
    except Forbidden:
        warn(f"not allowed to list hosted clusters everywhere: only namespace {options.namespace} was searched")
        clusters = await client.list(HOSTEDCLUSTERS, options.namespace)
    existing = None
    for cluster in clusters:
        meta = cluster["metadata"]
        if meta["name"] == options.name and meta["namespace"] == options.namespace:
            existing = cluster
        elif meta["name"] == options.name:
            raise HcpError(
                f"the name {options.name} is already used by hosted cluster {meta['namespace']}/{meta['name']}",
                hint="names of hosted clusters are unique in a management cluster: choose another --name",
            )
    if existing is not None:
        await _resumable(client, call, options, existing)
    return existing


async def _resumable(client: Client, call: Call, options: ClusterOptions, existing: Object) -> None:
    """A cluster that exists is refused, unless an earlier run made it and could not make its node pool."""
    label = (existing["metadata"].get("labels") or {}).get(names.LABEL_AUTO_CREATED)
    pool = await client.get_or_none(NODEPOOLS, options.name, options.namespace)
    if label and pool is None and options.workers is not None and not existing["metadata"].get("deletionTimestamp"):
        return
    raise HcpError(
        f"hostedcluster {options.namespace}/{options.name} already exists",
        hint=f"{call.prog} status {options.name} -n {options.namespace} shows it; "
        f"{call.prog} create nodepool {options.platform.lower()} adds workers",
    )


async def managed_cluster(client: Client, namespace: str) -> None:
    """Namespaces of managed clusters belong to the tool that manages those clusters."""
    try:
        owner = await client.get_or_none(MANAGED_CLUSTERS, namespace)
    except Forbidden:
        owner = None
    if owner is None:
        found = await client.get_or_none(NAMESPACES, namespace)
        owner = found if found and MANAGED_LABEL in (found["metadata"].get("labels") or {}) else None
    if owner is not None:
        raise HcpError(
            f"namespace {namespace} belongs to the ManagedCluster of that name",
            cause="a hosted cluster cannot be created in the namespace of a managed cluster",
            hint="choose another --namespace, for example clusters",
        )


async def trust_bundle(client: Client, options: ClusterOptions, existing: Object | None) -> None:
    """All clusters of a namespace share one ConfigMap for CAs: it is never changed under another cluster."""
    if options.trust_bundle is None:
        return
    found = await client.get_or_none(CONFIGMAPS, names.USER_CA_BUNDLE, options.namespace)
    if found is None or (found.get("data") or {}).get(names.CA_BUNDLE_KEY) == options.trust_bundle:
        return
    owner = (found["metadata"].get("labels") or {}).get(names.LABEL_AUTO_CREATED)
    mine = (existing or {}).get("metadata", {}).get("labels", {}).get(names.LABEL_AUTO_CREATED)
    if owner and owner in (mine, options.infra_id, await etcd_infra_id(client, options)):
        return
    raise HcpError(
        f"ConfigMap {options.namespace}/{names.USER_CA_BUNDLE} already holds other certificates",
        cause=f"it was made for {owner or 'somebody else'} and other clusters of the namespace may trust it",
        hint="create this cluster in a --namespace of its own, or put both bundles into one file, "
        "update the ConfigMap with it, and give that file with --additional-trust-bundle",
    )


async def etcd_infra_id(client: Client, options: ClusterOptions) -> str:
    """The infrastructure id under which an earlier, unfinished run made this cluster's Secrets."""
    found = await client.get_or_none(SECRETS, f"{options.name}-etcd-encryption-key", options.namespace)
    return str(((found or {}).get("metadata", {}).get("labels") or {}).get(names.LABEL_AUTO_CREATED, ""))


async def architecture(client: Client, options: ClusterOptions) -> None:
    """VMs run on the management cluster's processors, unless another infra cluster is named."""
    if options.workers is None or options.infra_kubeconfig is not None:
        return
    try:
        nodes = await client.list(NODES)
    except Forbidden:
        nodes = []
    arches = {str((node["metadata"].get("labels") or {}).get("kubernetes.io/arch") or "") for node in nodes} - {""}
    if not arches:
        platform = str((await client.raw("GET", "/version")).get("platform") or "")
        arches = {platform.partition("/")[2]} - {""}
    if arches and options.workers.arch not in arches:
        have = ", ".join(sorted(arches))
        raise HcpError(
            f"--arch {options.workers.arch} cannot run on the management cluster, whose nodes have {have}",
            hint=f"--arch {have}, or --infra-kubeconfig-file for a cluster that has the other one",
        )


async def infra(client: Client, options: ClusterOptions) -> None:
    """Where the VMs will run, as `doctor` sees it. Only warnings: the operator may see what this machine cannot."""
    from hcp.preflight.infra import check as infra_check
    from hcp.preflight.platform import addresses
    from hcp.preflight.result import FAIL

    findings = []
    try:
        async with asyncio.timeout(INFRA_PATIENCE):
            if options.infra_kubeconfig is None:
                findings = [await addresses(client, [*options.cluster_cidrs, *options.service_cidrs])]
            else:
                async with Client(untrusted_kubeconfig.load(options.infra_kubeconfig)) as other:
                    findings = await infra_check(other, options.infra_namespace)
    except TimeoutError:
        warn("the infra cluster does not answer; hcp doctor looks at it in detail")
    except HcpError as error:
        warn(f"the infra cluster cannot be looked at: {error}")
    for finding in findings:
        if finding.state == FAIL:
            warn(f"{finding.check}: {finding.message}" + (f" ({finding.hint})" if finding.hint else ""))


async def storage_classes(client: Client, options: ClusterOptions) -> None:
    """Classes that do not exist leave volumes pending for ever: say so now. Missing rights only mean silence."""
    try:
        found = await client.list(STORAGECLASSES)
    except Forbidden:
        return
    known = {item["metadata"]["name"] for item in found}
    wanted = {"etcd-storage-class": options.etcd_storage_class}
    if options.infra_kubeconfig is None and options.platform == names.PLATFORM_KUBEVIRT:
        wanted["root-volume-storage-class"] = options.workers.root_volume_storage_class if options.workers else ""
        for mapping in options.storage_class_mappings:
            _class_exists("infra-storage-class-mapping", mapping["infraStorageClassName"], known)
    default = any((item["metadata"].get("annotations") or {}).get(DEFAULT_CLASS) == "true" for item in found)
    for flag, name in wanted.items():
        if name:
            _class_exists(flag, name, known)
        elif not default:
            warn(f"the management cluster has no default StorageClass and --{flag} is not given: volumes will wait")


def _class_exists(flag: str, name: str, known: set[str]) -> None:
    if name not in known:
        warn(f"--{flag} {name}: there is no such StorageClass yet (there are: {', '.join(sorted(known)) or 'none'})")


async def router(client: Client) -> None:
    """An API on a Route: pods of the guest find it only through a router that can be told which one they mean."""
    from hcp.router.manifests import NAME, NAMED

    if not await client.has(ROUTES):
        warn("the management cluster serves no Routes: hcp install --router adds a router")
        return
    try:
        found = await client.get_or_none(SERVICES, NAME, names.ROUTER_NAMESPACE)
    except Forbidden:
        return
    if not any(port.get("name") == NAMED for port in at(found, "spec.ports") or ()):
        warn(
            "the management cluster's router is not hcp's: pods of the hosted cluster will not reach "
            "kubernetes.default by a Route; --publish load-balancer works everywhere"
        )


async def node_address(client: Client) -> str:
    """An address of some node, for services published on node ports."""
    nodes = (await client.raw("GET", NODES.path(), params={"limit": "1"})).get("items") or []
    if not nodes:
        raise HcpError("no node objects found to take an address from", hint=GIVE)
    addresses = {item["type"]: item["address"] for item in nodes[0].get("status", {}).get("addresses") or []}
    for kind in ("ExternalDNS", "ExternalIP", "InternalIP"):
        if addresses.get(kind):
            return str(addresses[kind])
    raise HcpError(f"node {nodes[0]['metadata']['name']} has no usable address", hint=GIVE)
