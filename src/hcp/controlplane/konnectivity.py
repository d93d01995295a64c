"""The konnectivity server: a container beside kube-apiserver, joined to it by a Unix socket."""

from __future__ import annotations

from hcp.controlplane.apiserver_config import UDS_DIR, UDS_NAME
from hcp.controlplane.params import AGENT_PORT, Manifest, Params
from hcp.controlplane.pod import container, go_environment, http_probe, requests, secret_volume

HEALTH_PORT = 2041
ADMIN_PORT = 8093
TLS = "/etc/konnectivity/cluster"


def arguments(p: Params, tls: str = TLS, uds: str = UDS_NAME) -> list[str]:
    """Agents show a certificate of konnectivity-signer; the API server needs none, only the file system lets it in."""
    return [
        "--mode=grpc",
        f"--uds-name={uds}",
        "--delete-existing-uds-file=true",
        "--server-port=0",
        f"--agent-port={AGENT_PORT}",
        f"--health-port={HEALTH_PORT}",
        f"--admin-port={ADMIN_PORT}",
        "--admin-bind-address=127.0.0.1",
        f"--cluster-cert={tls}/tls.crt",
        f"--cluster-key={tls}/tls.key",
        f"--cluster-ca-cert={tls}/ca.crt",
        "--proxy-strategies=destHost,defaultRoute",
        "--keepalive-time=30s",
        "--frontend-keepalive-time=30s",
        f"--server-count={p.replicas}",
        "--v=1",
    ]


def volumes() -> list[Manifest]:
    return [secret_volume("konnectivity-cluster", "konnectivity-cluster")]


def server(p: Params, image: str) -> Manifest:
    return container(
        "konnectivity-server",
        image,
        ["proxy-server", *arguments(p)],
        resources=requests(p, "kube-apiserver", "konnectivity-server", "1m", "16Mi"),
        ports={"agent": AGENT_PORT, "health": HEALTH_PORT},
        mounts={"konnectivity-cluster": TLS, "konnectivity-uds": UDS_DIR},
        writable=["konnectivity-uds"],
        env=go_environment(p),
        startupProbe=http_probe("/healthz", HEALTH_PORT, scheme="HTTP", failures=300),
        livenessProbe=http_probe("/healthz", HEALTH_PORT, scheme="HTTP", period=60, timeout=30),
    )
