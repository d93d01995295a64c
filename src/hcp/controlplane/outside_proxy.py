"""The proxy of a hosted cluster, for those parts of its control plane that ask servers of the outside. Pure.

These are the OAuth server, when it asks providers, and kube-apiserver, when it fetches the keys of the owner's issuer.
Nobody else is told: what a cluster does not use must roll nothing.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from hcp.controlplane.params import Params

_DIRECT = (".cluster.local", ".svc", "etcd-client", "localhost", "127.0.0.1")
# Servers that are named by an address: kubelets, whose networks may belong to somebody else.
_EVERY_ADDRESS = ("0.0.0.0/0", "::/0")


def environment(p: Params, *, addresses: bool = False) -> dict[str, str]:
    """As Go reads it; nothing where there is no proxy. `addresses`: who is named by an address is asked directly."""
    http, https = str(p.proxy.get("httpProxy") or ""), str(p.proxy.get("httpsProxy") or "")
    if not (http or https):
        return {}
    given = [part.strip() for part in str(p.proxy.get("noProxy") or "").split(",")]
    networks = _EVERY_ADDRESS if addresses else (*p.cluster_networks, *p.service_networks, *p.management_networks)
    etcd = urlsplit(p.foreign_etcd).hostname or ""
    direct = sorted({part for part in (*_DIRECT, *networks, etcd, *given) if part})
    values = {"HTTP_PROXY": http, "HTTPS_PROXY": https, "NO_PROXY": ",".join(direct)}
    return {name: value for name, value in values.items() if value}
