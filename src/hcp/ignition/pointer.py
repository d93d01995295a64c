"""The small document a VM carries on its config drive: where to fetch the real one, and with which token."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass

from hcp.ignition.document import SPEC_VERSION, data_url

ALWAYS_DIRECT = (".cluster.local", ".local", ".svc", "127.0.0.1", "localhost")


@dataclass(frozen=True)
class Proxy:
    """The hosted cluster's HTTP proxy settings."""

    http: str = ""
    https: str = ""
    direct: tuple[str, ...] = ()
    authority: str = ""
    """CAs of a proxy that ends TLS itself, as PEM."""


def authorization(token: str) -> str:
    """The header value that shows ``token``."""
    return f"Bearer {base64.b64encode(token.encode()).decode()}"


def pointer(endpoint: str, ca_pem: bytes, token: str, node_pool: str, target: str, proxy: Proxy | None = None) -> str:
    """The user data of a VM as JSON text."""
    headers = {"Authorization": authorization(token), "NodePool": node_pool, "TargetConfigVersionHash": target}
    authorities = [ca_pem, *([proxy.authority.encode()] if proxy and proxy.authority else [])]
    ignition: dict[str, object] = {
        "version": SPEC_VERSION,
        "security": {"tls": {"certificateAuthorities": [{"source": data_url(pem)} for pem in authorities]}},
        "config": {
            "merge": [
                {
                    "source": f"https://{endpoint}/ignition",
                    "httpHeaders": [{"name": name, "value": value} for name, value in headers.items()],
                }
            ]
        },
    }
    if proxy and (proxy.http or proxy.https):
        settings: dict[str, object] = {}
        if proxy.http:
            settings["httpProxy"] = proxy.http
        if proxy.https:
            settings["httpsProxy"] = proxy.https
        settings["noProxy"] = sorted({*ALWAYS_DIRECT, *proxy.direct})
        ignition["proxy"] = settings
    return json.dumps({"ignition": ignition}, separators=(",", ":"))
