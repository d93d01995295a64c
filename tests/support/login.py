"""dex as a hosted cluster runs it, and a second one that stands for somebody's identity provider."""

from __future__ import annotations

import base64
import json
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

from tests.support import management as s
from tests.support.api_server import free_port

from hcp import payload, pki
from hcp.controlplane import authentication, oauth
from hcp.kube import Client
from hcp.kube import resources as k

# The hash that dex's own examples have, of the word "password".
HASH = "$2a$10$2b2cU8CPhOTaGrs1HRQuAueS7JTT5ZHsHSzYiFPm1leZck7Mc8T4W"
PASSWORD = "password"
CLIENT_SECRET = "$a-secret-with-a-$dollar"


def binary() -> Path:
    return payload.ensure(["dex"])["dex"] / "bin" / "dex"


class HostedLogin(s.HostedProcesses):
    """A hosted control plane whose OAuth server runs too, on the node port it was given."""

    def __init__(self, directory: Path, bin_dir: Path, client: Client, ns: str) -> None:
        super().__init__(directory, bin_dir)
        self._client, self._ns = client, ns
        self._dex: subprocess.Popen[bytes] | None = None
        self.metrics = ""
        self.log = directory / "dex.log"

    @property
    def api(self) -> subprocess.Popen[bytes]:
        return self._processes[1]

    @property
    def api_log(self) -> Path:
        return self._directory / "kube-apiserver.log"

    @property
    def server(self) -> subprocess.Popen[bytes]:
        assert self._dex is not None
        return self._dex

    async def start_server(self) -> None:
        """As its Deployment says; one that ran is replaced."""
        if self._dex is not None:
            self._dex.kill()
            self._dex.wait()
            self._processes.remove(self._dex)
        live = await self._client.get(k.DEPLOYMENTS, oauth.COMPONENT, self._ns)
        pod = live["spec"]["template"]["spec"]
        command = await self._materialize(self._client, self._ns, pod)
        service = await self._client.get(k.SERVICES, oauth.COMPONENT, self._ns)
        port, telemetry = service["spec"]["ports"][0]["nodePort"], free_port()
        file = Path(command[-1])
        text = file.read_text()
        for mount in pod["containers"][0]["volumeMounts"]:
            text = text.replace(mount["mountPath"], str(self._directory / "dex" / mount["name"]))
        text = text.replace(f"0.0.0.0:{oauth.PORT}", f"127.0.0.1:{port}")
        file.write_text(text.replace(f"0.0.0.0:{oauth.METRICS_PORT}", f"127.0.0.1:{telemetry}"))
        self.metrics = f"http://127.0.0.1:{telemetry}/metrics"
        env = {one["name"]: one["value"] for one in pod["containers"][0]["env"]}
        with self.log.open("ab") as log:
            self._dex = subprocess.Popen([binary(), *command[1:]], stdout=log, stderr=log, env=env)
        self._processes.append(self._dex)

    async def refresh(self) -> None:
        """What a kubelet does from time to time: files that changed are written anew where pods see them."""
        config = await self._client.get(k.CONFIGMAPS, authentication.CONFIG, self._ns)
        file = self._directory / "kube-apiserver" / authentication.CONFIG / authentication.FILE
        if file.read_text() != config["data"][authentication.FILE]:
            fresh = file.with_suffix(".fresh")
            fresh.write_text(config["data"][authentication.FILE])
            fresh.replace(file)
        folder = self._directory / "dex" / "users"
        if folder.is_dir():
            users = await self._client.get(k.SECRETS, oauth.USERS, self._ns)
            for old in folder.iterdir():
                if old.name not in (users.get("data") or {}):
                    old.unlink()
            for key, value in (users.get("data") or {}).items():
                (folder / key).write_bytes(base64.b64decode(value))

    def counted(self, result: str) -> float:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(self.metrics, timeout=30) as answer:
            lines = answer.read().decode().splitlines()
        wanted = f'hcp_login_attempts_total{{result="{result}"}} '
        return next((float(line.removeprefix(wanted)) for line in lines if line.startswith(wanted)), 0.0)


class Provider:
    """Somebody's issuer: users of its own, a client for ours."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        self.issuer = f"https://127.0.0.1:{self.port}"
        self.ca = pki.new_ca("provider-ca")

    def start(self, callback: str) -> None:
        d = self._directory
        leaf = pki.issue(self.ca, "provider", ips=("127.0.0.1",), usage="server")
        (d / "provider.crt").write_bytes(leaf.cert_pem)
        (d / "provider.key").write_bytes(leaf.key_pem)
        user = {"email": "bob@example.com", "username": "bob", "preferredUsername": "bob", "userID": "b", "hash": HASH}
        client = {"id": "ours", "name": "ours", "secret": CLIENT_SECRET, "redirectURIs": [callback]}
        config: dict[str, Any] = {
            "issuer": self.issuer,
            "storage": {"type": "memory"},
            "web": {
                "https": f"127.0.0.1:{self.port}",
                "tlsCert": str(d / "provider.crt"),
                "tlsKey": str(d / "provider.key"),
            },
            "oauth2": {"skipApprovalScreen": True, "passwordConnector": "local"},
            "enablePasswordDB": True,
            "staticPasswords": [user],
            "staticClients": [client],
        }
        (d / "provider.json").write_text(json.dumps(config))
        with (d / "provider.log").open("ab") as log:
            command = [str(binary()), "serve", str(d / "provider.json")]
            env = {"DEX_EXPAND_ENV": "false"}
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env=env)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
