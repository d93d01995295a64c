"""A real etcd and kube-apiserver for tests, that can be stopped and started under the code being tested."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import yaml
from tests.support.ports import free_port

from hcp import pki
from hcp.kube import Client

__all__ = [
    "STARTS",
    "START_SECONDS",
    "ApiServer",
    "LocalServer",
    "account_token",
    "binaries",
    "free_port",
    "local_opener",
]


def binaries(links: Path) -> Path:
    """The directory with etcd, etcdctl and kube-apiserver: given, else links to what the cache has or builds."""
    given = os.environ.get("HCP_TEST_BIN")
    if given:
        return Path(given)
    from hcp import payload

    for directory in payload.ensure(["etcd", "kubernetes-1.36"]).values():
        for binary in (directory / "bin").iterdir():
            (links / binary.name).symlink_to(binary)
    return links


# How often a server may end before it has answered.
STARTS = 3
# A machine that does other things too takes its time; this only ends a test that would hang.
START_SECONDS = 600
TAKEN = "address already in use"


def local_opener(context: ssl.SSLContext) -> urllib.request.OpenerDirector:
    """Asks servers of this machine: a proxy that the environment names is not for them."""
    return urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))


class ApiServer:
    """One etcd and one kube-apiserver with their own data, certificates and ports."""

    def __init__(self, directory: Path, bin_dir: Path) -> None:
        self.directory = directory
        self.bin_dir = bin_dir
        self.port, self.etcd_port, self.peer_port = free_port(), free_port(), free_port()
        # Until it has answered once nobody knows its ports, so it may have others.
        self._answered = False
        self.kubeconfig = directory / "kubeconfig"
        self._etcd: subprocess.Popen[bytes] | None = None
        self._api: subprocess.Popen[bytes] | None = None
        self._write_files()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.start_etcd()
        self.start_api()

    def stop(self) -> None:
        self.stop_api()
        self.stop_etcd()

    def start_etcd(self) -> None:
        """Waits until it answers: an API server gives up an etcd that takes long."""
        for left in reversed(range(STARTS)):
            self._begin_etcd()
            try:
                self._wait(f"http://127.0.0.1:{self.etcd_port}/health", "etcd")
                return
            except RuntimeError:
                if left == 0 or self._etcd is None or self._etcd.poll() is None:
                    raise
            if not self._answered and TAKEN in self.log("etcd"):
                self.etcd_port, self.peer_port = free_port(), free_port()
                shutil.rmtree(self.directory / "etcd", ignore_errors=True)

    def _begin_etcd(self) -> None:
        client, peer = f"http://127.0.0.1:{self.etcd_port}", f"http://127.0.0.1:{self.peer_port}"
        self._etcd = self._run(
            "etcd",
            f"--data-dir={self.directory / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
        )

    def start_api(self, *extra: str) -> None:
        """One that ended by itself is started again, as a kubelet would: it does when etcd does not answer in time."""
        for left in reversed(range(STARTS)):
            self._begin_api(*extra)
            try:
                self.wait_ready()
                self._answered = True
                break
            except RuntimeError:
                if left == 0 or self._api is None or self._api.poll() is None:
                    raise
            if not self._answered and TAKEN in self.log("kube-apiserver"):
                self.port = free_port()
                self._write_files()

    def _begin_api(self, *extra: str) -> None:
        d = self.directory
        self._api = self._run(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--cert-dir={d / 'certs'}",
            f"--tls-cert-file={d / 'server.crt'}",
            f"--tls-private-key-file={d / 'server.key'}",
            f"--client-ca-file={d / 'ca.crt'}",
            f"--token-auth-file={d / 'tokens.csv'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={d / 'accounts.pub'}",
            f"--service-account-signing-key-file={d / 'accounts.key'}",
            "--service-cluster-ip-range=10.250.0.0/24",
            "--authorization-mode=RBAC",
            "--disable-admission-plugins=ServiceAccount",
            "--etcd-compaction-interval=0",
            "--shutdown-delay-duration=0s",
            *extra,
        )

    def stop_api(self, *, kill: bool = False) -> None:
        _end(self._api, kill)
        self._api = None

    def stop_etcd(self) -> None:
        _end(self._etcd, True)
        self._etcd = None

    def compact(self, revision: str) -> None:
        """Make etcd forget everything before this revision, so that older watches get 410."""
        endpoint = f"--endpoints=http://127.0.0.1:{self.etcd_port}"
        subprocess.run([self.bin_dir / "etcdctl", endpoint, "compact", revision], check=True, capture_output=True)

    def wait_ready(self) -> None:
        self._wait(f"{self.url}/readyz", "kube-apiserver")

    def _wait(self, url: str, binary: str) -> None:
        """Until it answers; RuntimeError when it ended, or never does."""
        ask = local_opener(ssl.create_default_context(cafile=str(self.directory / "ca.crt")))
        give_up = time.monotonic() + START_SECONDS
        while True:
            try:
                with ask.open(url, timeout=5) as answer:
                    if answer.status == 200:
                        return
            except (urllib.error.URLError, OSError):
                pass
            process = self._etcd if binary == "etcd" else self._api
            if process is None or process.poll() is not None or time.monotonic() > give_up:
                raise RuntimeError(f"{binary} did not start:\n" + self.log(binary)[-3000:])
            time.sleep(0.05)

    def log(self, binary: str) -> str:
        return (self.directory / f"{binary}.log").read_text(errors="replace")

    def _run(self, binary: str, *args: str) -> subprocess.Popen[bytes]:
        with (self.directory / f"{binary}.log").open("ab") as log:
            return subprocess.Popen(
                [self.bin_dir / binary, *args], stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.directory
            )

    def _write_files(self) -> None:
        d = self.directory
        ca = pki.new_ca("test")
        server = pki.issue(ca, "kube-apiserver", dns=("localhost", "kubernetes"), ips=("127.0.0.1",), usage="server")
        admin = pki.issue(ca, "admin", orgs=("system:masters",), usage="client")
        (d / "ca.crt").write_bytes(ca.cert_pem)
        (d / "ca.key").write_bytes(ca.key_pem)
        (d / "server.crt").write_bytes(server.cert_pem)
        (d / "server.key").write_bytes(server.key_pem)
        accounts = pki.new_signing_key()
        (d / "accounts.key").write_bytes(accounts)
        (d / "accounts.pub").write_bytes(pki.public_key(accounts))
        (d / "tokens.csv").write_text("admin-token,admin,1,system:masters\nnobody-token,nobody,2,nobodies\n")
        config = pki.kubeconfig(self.url, ca.cert_pem, admin.cert_pem, admin.key_pem)
        self.kubeconfig.write_text(yaml.safe_dump(config))


class LocalServer:
    """What a user gets from `hcp local up --profile api`, with a state folder of its own. Needs no root."""

    def __init__(self, directory: Path) -> None:
        self.kubeconfig = directory / "kubeconfig"
        self._name = f"test-{os.getpid()}"
        self._env = {**os.environ, "XDG_STATE_HOME": str(directory)}

    def start(self) -> None:
        self._hcp("up", "--profile", "api")
        self.kubeconfig.write_text(self._hcp("kubeconfig"))

    def stop(self) -> None:
        self._hcp("down", "--purge")

    def _hcp(self, *words: str) -> str:
        command = [str(Path(sys.executable).parent / "hcp"), "local", *words, "--name", self._name]
        done = subprocess.run(command, env=self._env, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
        return done.stdout


async def account_token(admin: Client, account: str, namespace: str) -> str:
    """A token of a ServiceAccount, as a pod of its would have one."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    return str((await admin.raw("POST", path, body=body))["status"]["token"])


def _end(process: subprocess.Popen[bytes] | None, kill: bool) -> None:
    if process is None:
        return
    if kill:
        process.kill()
    else:
        process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
