"""The kubeconfig Secrets: who reaches the hosted API how."""

from __future__ import annotations

from collections.abc import Mapping

from hcp.api import names
from hcp.controlplane.meta import secret, secret_data
from hcp.controlplane.params import Manifest, Params
from hcp.pki import kubeconfig, kubeconfig_yaml
from hcp.runtime.context import PUBLISHED_KUBECONFIG

KEY = names.KUBECONFIG_KEY


def internal_url(p: Params) -> str:
    """From pods of the hosted namespace: the short name resolves with one question to the DNS."""
    return f"https://{names.API_SERVICE}:{p.api_port}"


def service_url(p: Params) -> str:
    """From anywhere in the management cluster."""
    return f"https://{names.API_SERVICE}.{p.namespace}.svc:{p.api_port}"


def localhost_url(p: Params) -> str:
    """Through a port forwarded from the API server's pod, as tools do that gather facts for support."""
    return f"https://localhost:{p.api_port}"


def _render(server: str, ca: bytes, leaf: Mapping[str, object]) -> bytes:
    data = secret_data(leaf)
    return kubeconfig_yaml(kubeconfig(server, ca, data["tls.crt"], data["tls.key"]))


def internal(p: Params, leaves: Mapping[str, Mapping[str, object]], root_ca: bytes) -> list[Manifest]:
    """Kubeconfigs over the service network; they need no published address."""
    table = (
        ("kube-controller-manager-kubeconfig", internal_url(p), "kube-controller-manager"),
        ("kube-scheduler-kubeconfig", internal_url(p), "kube-scheduler-client"),
        # Ours and Cluster API's: the administrator's can be revoked without them.
        ("service-network-admin-kubeconfig", service_url(p), "hcco-client"),
        ("localhost-kubeconfig", localhost_url(p), "system-admin-client"),
        ("hcco-kubeconfig", service_url(p), "hcco-client"),
    )
    result = [secret(p, name, {KEY: _render(url, root_ca, leaves[leaf])}) for name, url, leaf in table]
    capi = {"value": _render(service_url(p), root_ca, leaves["hcco-client"])}
    labels = {names.LABEL_CAPI_CLUSTER_NAME: p.infra_id}
    result.append(secret(p, f"{p.infra_id}-kubeconfig", capi, "cluster.x-k8s.io/secret", labels=labels))
    return result


def external(p: Params, leaves: Mapping[str, Mapping[str, object]], root_ca: bytes) -> list[Manifest]:
    """Kubeconfigs over the published address: the administrator's, ours, and the nodes' first one."""
    if p.api_endpoint is None:
        return []
    url = p.api_endpoint.url
    result = [
        secret(p, "admin-kubeconfig", {KEY: _render(url, root_ca, leaves["system-admin-client"])}),
        secret(p, PUBLISHED_KUBECONFIG, {KEY: _render(url, root_ca, leaves["hcco-client"])}),
        secret(p, "bootstrap-kubeconfig", {KEY: _render(url, root_ca, leaves["kas-bootstrap-client"])}),
    ]
    if p.api_dns_name:
        custom = f"https://{p.api_dns_name}:{p.api_endpoint.port}"
        data = {KEY: _render(custom, root_ca + p.api_dns_trust, leaves["system-admin-client"])}
        result.append(secret(p, "custom-admin-kubeconfig", data))
    return result


def for_users(p: Params, admin: bytes, owner: Mapping[str, object], custom: bytes | None = None) -> list[Manifest]:
    """In the HostedCluster's namespace, under both names the guides use."""
    table = {f"{p.name}-admin-kubeconfig": admin, f"{p.cluster_namespace}-{p.name}-admin-kubeconfig": admin}
    if custom is not None:
        table[f"{p.name}-custom-admin-kubeconfig"] = custom
    result = []
    for name, data in table.items():
        manifest = secret(p, name, {KEY: data})
        manifest["metadata"]["namespace"] = p.cluster_namespace
        manifest["metadata"]["ownerReferences"] = [dict(owner)]
        result.append(manifest)
    return result
