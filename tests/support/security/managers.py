"""Cluster API's two managers as real processes, each with a token of its ServiceAccount."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.support.api_server import ApiServer, account_token, free_port

from hcp import payload, pki
from hcp.api import names
from hcp.kube import Client, ClusterConfig
from hcp.kube.config import UserAuth
from hcp.operator import capi
from hcp.payload.builders.capi import OFFICIAL

COMPONENTS = {"cluster-api": names.CAPI_CORE, "cluster-api-kubevirt": names.CAPI_PROVIDER}
USER = "system:serviceaccount:hypershift:{}"


async def as_account(admin: Client, server: ApiServer, name: str) -> Client:
    """A client that is this ServiceAccount of the operator's namespace."""
    token = await account_token(admin, name, names.OPERATOR_NAMESPACE)
    ca = (server.directory / "ca.crt").read_bytes()
    return Client(ClusterConfig(server.url, ca_pem=ca, auth=UserAuth(token=token)))


def followers() -> list[str]:
    """Those of the two that are official builds here, and so follow Secrets."""
    folders = payload.ensure(list(COMPONENTS))
    return [account for one, account in COMPONENTS.items() if any(folders[one].glob(f"bin/*{OFFICIAL}"))]


class Managers:
    """Started with the command lines that the operator gives them."""

    def __init__(self, server: ApiServer, directory: Path) -> None:
        self._server = server
        self._directory = directory
        self._processes: list[subprocess.Popen[bytes]] = []

    async def start(self, admin: Client) -> None:
        for component, account in COMPONENTS.items():
            token = await account_token(admin, account, names.OPERATOR_NAMESPACE)
            self._run(component, account, self._kubeconfig(account, token))

    def stop(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    def log(self, account: str) -> str:
        return (self._directory / f"{account}.log").read_text(errors="replace")

    def running(self) -> bool:
        return all(process.poll() is None for process in self._processes)

    def _kubeconfig(self, account: str, token: str) -> Path:
        ca = (self._server.directory / "ca.crt").read_bytes()
        config: dict[str, Any] = pki.kubeconfig(self._server.url, ca, b"", b"")
        config["users"][0]["user"] = {"token": token}
        path = self._directory / f"{account}.kubeconfig"
        path.write_text(json.dumps(config))  # which the stand-in of official builds can read
        return path

    def _run(self, component: str, account: str, kubeconfig: Path) -> None:
        binary = payload.ensure([component])[component] / "bin"
        pod = capi.deployment(component, "x", names.OPERATOR_NAMESPACE)["spec"]["template"]["spec"]
        name, *arguments = pod["containers"][0]["command"]
        # Ports and certificates are this machine's; one process each needs no election.
        drop = ("--leader-elect", "--diagnostics-address", "--webhook-cert-dir", "--insecure-diagnostics")
        kept = [a for a in arguments if not a.startswith(drop)]
        certs = self._directory / f"{account}-certs"
        certs.mkdir()
        ca = pki.new_ca("webhooks")
        pair = pki.issue(ca, "webhooks", dns=("localhost",), usage="server")
        (certs / "tls.crt").write_bytes(pair.cert_pem)
        (certs / "tls.key").write_bytes(pair.key_pem)
        own = [f"--webhook-port={free_port()}", f"--webhook-cert-dir={certs}", f"--kubeconfig={kubeconfig}"]
        own += [f"--health-addr=127.0.0.1:{free_port()}"]
        if component == "cluster-api":
            own += [f"--diagnostics-address=127.0.0.1:{free_port()}", "--insecure-diagnostics=true"]
        else:
            own += ["--metrics-bind-addr=0"]
        with (self._directory / f"{account}.log").open("ab") as log:
            self._processes.append(
                subprocess.Popen([binary / name.lstrip("/"), *kept, *own], stdout=log, stderr=log, cwd=self._directory)
            )
