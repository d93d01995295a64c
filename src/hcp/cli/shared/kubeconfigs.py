"""Finding the kubeconfigs of hosted clusters and putting several into one."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

from hcp.api import names
from hcp.cli.engine.terminal import note
from hcp.errors import HcpError
from hcp.kube import Client, untrusted_kubeconfig
from hcp.kube.errors import NotFound
from hcp.kube.resources import HOSTEDCLUSTERS, SECRETS

NOT_FOUND = 4
Object = dict[str, Any]


async def find_cluster(client: Client, prog: str, namespace: str, name: str) -> Object:
    """The HostedCluster, or an error that names clusters there are."""
    try:
        return await client.get(HOSTEDCLUSTERS, name, namespace)
    except NotFound:
        pass
    try:
        others = [f"{o['metadata']['namespace']}/{o['metadata']['name']}" for o in await client.list(HOSTEDCLUSTERS)]
    except NotFound:
        raise HcpError(
            "the management cluster does not know HostedClusters",
            hint=f"install the operator first: {prog} install",
            exit_code=NOT_FOUND,
        ) from None
    except HcpError:
        others = []
    raise HcpError(
        f"there is no hosted cluster {namespace}/{name}",
        hint=f"there are: {', '.join(sorted(others))}" if others else f"{prog} get clusters -A lists all",
        exit_code=NOT_FOUND,
    )


def _source(namespace: str, name: str) -> str:
    return f"The kubeconfig of hosted cluster {namespace}/{name}"


async def single(client: Client, prog: str, namespace: str, name: str) -> bytes:
    cluster = await find_cluster(client, prog, namespace, name)
    return untrusted_kubeconfig.plain_text(await from_secret(client, prog, cluster), _source(namespace, name))


async def from_secret(client: Client, prog: str, cluster: Object) -> bytes:
    meta = cluster["metadata"]
    where = f"{meta['namespace']}/{meta['name']}"
    secret_name = ((cluster.get("status") or {}).get("kubeconfig") or {}).get("name")
    if not secret_name:
        raise HcpError(
            f"hosted cluster {where} doesn't report a kubeconfig",
            cause="its API server has no address yet",
            hint=f"{prog} status {meta['name']} -n {meta['namespace']} shows what it waits for",
        )
    secret = await client.get_or_none(SECRETS, secret_name, meta["namespace"])
    raw = ((secret or {}).get("data") or {}).get(names.KUBECONFIG_KEY)
    data = b64decode(raw) if raw else b""
    if not data:
        raise HcpError(
            f"the kubeconfig secret {meta['namespace']}/{secret_name} of hosted cluster {where} has no kubeconfig",
            hint="the operator writes it; its log tells why it is missing",
        )
    return data


async def merged(client: Client, namespace: str | None) -> Object:
    """One Config for all clusters that have a kubeconfig; the others are named on stderr and left out."""
    clusters = await client.list(HOSTEDCLUSTERS, namespace)
    config: Object = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [],
        "contexts": [],
        "users": [],
        "current-context": "",
    }
    for cluster in clusters:
        meta = cluster["metadata"]
        where = f"{meta['namespace']}/{meta['name']}"
        try:
            data = await from_secret(client, "hcp", cluster)
            source = untrusted_kubeconfig.plain(data, _source(meta["namespace"], meta["name"]))
            add(config, f"{meta['namespace']}-{meta['name']}", source)
        except HcpError as error:
            note(f"left out {where}: {error}")
    note(f"{len(config['contexts'])} of {len(clusters)} hosted clusters have a kubeconfig")
    if config["contexts"]:
        config["current-context"] = config["contexts"][0]["name"]
    return config


def add(config: Object, name: str, source: Object) -> None:
    """Adds the one cluster and user of a plain kubeconfig under the given name."""
    user = f"{name}-admin"
    config["clusters"].append({"name": name, "cluster": source["clusters"][0]["cluster"]})
    config["users"].append({"name": user, "user": source["users"][0]["user"]})
    config["contexts"].append({"name": name, "context": {"cluster": name, "user": user, "namespace": "default"}})
