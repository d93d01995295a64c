"""Turning a user of a kubeconfig into TLS certificates and headers, and renewing them while we run.

Tokens in files (service accounts) are rotated by the kubelet, exec plugins hand out tokens that expire: both are
read again shortly before they are stale and whenever the server says 401.
"""

from __future__ import annotations

import asyncio
import base64
import datetime
import json
import os
import ssl
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hcp.errors import HcpError
from hcp.kube.config import ClusterConfig

TOKEN_FILE_PERIOD = 60.0
EXPIRY_MARGIN = 30.0


class Credentials:
    """The living side of a ClusterConfig: current headers and TLS context."""

    def __init__(self, config: ClusterConfig) -> None:
        self._config = config
        self._token = config.auth.token
        self._cert_pem = config.auth.cert_pem
        self._key_pem = config.auth.key_pem
        self._fresh_until = float("inf") if not self._renewable else 0.0
        self._lock = asyncio.Lock()
        self._context: ssl.SSLContext | None = None
        self.generation = 0

    @property
    def _renewable(self) -> bool:
        auth = self._config.auth
        return auth.token_file is not None or auth.exec_plugin is not None

    @property
    def can_refresh(self) -> bool:
        """Whether asking again could give other credentials than the ones just refused."""
        return self._renewable or self._config.auth.cert_file is not None

    async def headers(self) -> list[tuple[str, str]]:
        """The headers that carry identity, renewed first when they are about to expire."""
        await self._keep_fresh()
        auth = self._config.auth
        headers: list[tuple[str, str]] = []
        if self._token:
            headers.append(("Authorization", f"Bearer {self._token}"))
        elif auth.username is not None:
            pair = f"{auth.username}:{auth.password or ''}".encode()
            headers.append(("Authorization", "Basic " + base64.b64encode(pair).decode()))
        if auth.impersonate:
            headers.append(("Impersonate-User", auth.impersonate))
            headers += [("Impersonate-Group", group) for group in auth.impersonate_groups]
        return headers

    async def refresh(self, refused: int) -> None:
        """Read the token file or run the plugin again; `refused` is the generation the server did not accept.

        Many requests see the same 401 at once: only the first of them renews.
        """
        async with self._lock:
            if refused == self.generation:
                await self._renew()

    async def _keep_fresh(self) -> None:
        if time.monotonic() >= self._fresh_until:
            async with self._lock:
                if time.monotonic() >= self._fresh_until:
                    await self._renew()

    async def _renew(self) -> None:
        auth = self._config.auth
        self.generation += 1
        if auth.token_file is not None:
            self._token = _read_token(auth.token_file)
            self._fresh_until = time.monotonic() + TOKEN_FILE_PERIOD
        elif auth.exec_plugin is not None:
            await self._run_plugin(auth.exec_plugin)
        elif auth.cert_file is not None:
            self._context = None

    async def ssl_context(self) -> ssl.SSLContext:
        """The TLS settings for new connections; made again when the certificate was renewed."""
        await self._keep_fresh()
        if self._context is None:
            async with self._lock:
                if self._context is None:
                    self._context = await asyncio.to_thread(self._make_context)
        return self._context

    def client_certificate(self) -> bytes | None:
        """Our certificate in PEM, if we have one."""
        auth = self._config.auth
        if self._cert_pem:
            return self._cert_pem
        if auth.cert_file:
            try:
                return auth.cert_file.read_bytes()
            except OSError:
                return None
        return None

    def _make_context(self) -> ssl.SSLContext:
        config, auth = self._config, self._config.auth
        try:
            if config.ca_pem:
                context = ssl.create_default_context(cadata=config.ca_pem.decode("ascii", "replace"))
            elif config.ca_file:
                context = ssl.create_default_context(cafile=str(config.ca_file))
            else:
                context = ssl.create_default_context()
        except (ssl.SSLError, OSError, ValueError) as exc:
            source = config.ca_file or "certificate-authority-data of the kubeconfig"
            raise HcpError(f"The CA in {source} cannot be read", cause=str(exc)) from exc
        if config.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        try:
            if self._cert_pem and self._key_pem:
                _load_pem(context, self._cert_pem, self._key_pem)
            elif auth.cert_file and (auth.key_file or auth.key_pem):
                _load_pem(context, auth.cert_file.read_bytes(), auth.key_pem or _must(auth.key_file).read_bytes())
            elif self._cert_pem and auth.key_file:
                _load_pem(context, self._cert_pem, auth.key_file.read_bytes())
        except (ssl.SSLError, OSError) as exc:
            raise HcpError(
                "The client certificate and key of the kubeconfig cannot be used",
                cause=str(exc),
                hint="Get a new kubeconfig, or check that certificate and key belong together.",
            ) from exc
        return context

    async def _run_plugin(self, plugin: Mapping[str, Any]) -> None:
        status = await _exec_credential(plugin, self._config)
        self._token = status.get("token") or None
        cert, key = status.get("clientCertificateData"), status.get("clientKeyData")
        if cert and key:
            self._cert_pem, self._key_pem = cert.encode(), key.encode()
            self._context = None
        self._fresh_until = float("inf")
        expiry = status.get("expirationTimestamp")
        if expiry:
            until = datetime.datetime.fromisoformat(expiry.replace("Z", "+00:00"))
            left = (until - datetime.datetime.now(datetime.UTC)).total_seconds() - EXPIRY_MARGIN
            self._fresh_until = time.monotonic() + max(left, 1.0)


def _must(path: Path | None) -> Path:
    if path is None:
        raise HcpError("The kubeconfig has a client certificate without a key.")
    return path


def _read_token(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError as exc:
        raise HcpError(f"The token file {path} cannot be read", cause=exc.strerror or str(exc)) from exc


def _load_pem(context: ssl.SSLContext, cert: bytes, key: bytes) -> None:
    """OpenSSL loads a certificate and key from a file only: give it one nobody else can read, for a moment."""
    with tempfile.NamedTemporaryFile(prefix="hcp-") as file:
        file.write(cert.rstrip() + b"\n" + key)
        file.flush()
        # A key with a password would have OpenSSL ask for it on the terminal.
        context.load_cert_chain(file.name, password="")


async def _exec_credential(plugin: Mapping[str, Any], config: ClusterConfig) -> Mapping[str, Any]:
    """Run a client-go credential plugin and give back the status it prints."""
    command = str(plugin.get("command") or "")
    api_version = plugin.get("apiVersion") or "client.authentication.k8s.io/v1"
    interactive = plugin.get("interactiveMode") != "Never" and sys.stdin is not None and sys.stdin.isatty()
    spec: dict[str, Any] = {"interactive": interactive}
    if plugin.get("provideClusterInfo"):
        ca = base64.b64encode(config.ca_pem).decode() if config.ca_pem else ""
        spec["cluster"] = {"server": config.server, "certificate-authority-data": ca}
    env = dict(os.environ)
    env.update({e["name"]: e["value"] for e in plugin.get("env") or []})
    env["KUBERNETES_EXEC_INFO"] = json.dumps({"apiVersion": api_version, "kind": "ExecCredential", "spec": spec})
    try:
        process = await asyncio.create_subprocess_exec(
            command,
            *[str(a) for a in plugin.get("args") or []],
            env=env,
            stdin=None if interactive else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await process.communicate()
    except OSError as exc:
        raise HcpError(
            f"The credential plugin {command} of the kubeconfig cannot be run",
            cause=exc.strerror or str(exc),
            hint=str(plugin.get("installHint") or "Install it, or use a kubeconfig with a token.").strip(),
        ) from exc
    if process.returncode != 0:
        raise HcpError(f"The credential plugin {command} of the kubeconfig failed with exit code {process.returncode}.")
    try:
        status = json.loads(out)["status"]
    except (ValueError, KeyError, TypeError) as exc:
        raise HcpError(f"The credential plugin {command} of the kubeconfig printed no ExecCredential.") from exc
    if not isinstance(status, dict):
        raise HcpError(f"The credential plugin {command} of the kubeconfig printed no ExecCredential.")
    return status
