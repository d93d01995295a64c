"""The cluster's HTTP proxy on a node: for what pulls images and asks others, not for what stays in the cluster."""

from __future__ import annotations

from hcp.ignition.document import Document, document, file
from hcp.ignition.pointer import ALWAYS_DIRECT, Proxy

ENVIRONMENT = "/etc/hcp/proxy.env"
_DROPIN = "10-proxy.conf"
_UNITS = ("containerd.service", "kubelet.service")
_MIRROR_PROXY = "mirror-proxy.service"


def proxy_document(proxy: Proxy, *, mirrors: bool) -> Document:
    """An environment for the units that leave the cluster; nothing where there is no proxy. `mirrors`: as they do."""
    if not (proxy.http or proxy.https):
        return document()
    values = {
        "HTTP_PROXY": proxy.http,
        "HTTPS_PROXY": proxy.https,
        "NO_PROXY": ",".join(sorted({*ALWAYS_DIRECT, *proxy.direct})),
    }
    text = "".join(f'{name}="{_escaped(value)}"\n' for name, value in values.items() if value)
    dropin = {"name": _DROPIN, "contents": f"[Service]\nEnvironmentFile={ENVIRONMENT}\n"}
    units = [{"name": name, "dropins": [dropin]} for name in (*_UNITS, *([_MIRROR_PROXY] if mirrors else []))]
    return document(files=[file(ENVIRONMENT, text, 0o600)], units=units)


def _escaped(value: str) -> str:
    """Inside double quotes of systemd's environment files."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace("`", "\\`")
