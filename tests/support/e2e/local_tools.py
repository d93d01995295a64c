"""What the tests of embedded clusters share: the real command line, kubectl, pods that serve and pods that ask."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from tests.support.eventually import eventually_sync

from hcp.runtime import durations

HCP = Path(sys.executable).with_name("hcp")


def hcp(
    *words: str, check: bool = True, env: dict[str, str] | None = None, seconds: float = 0
) -> subprocess.CompletedProcess[str]:
    given = {**os.environ, **(env or {})}
    limit = seconds or patience(words)
    done = subprocess.run([str(HCP), *words], capture_output=True, text=True, check=False, timeout=limit, env=given)
    if check and done.returncode != 0:
        raise AssertionError(f"hcp {' '.join(words)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done


def patience(words: Sequence[str]) -> float:
    """How long a command may take: one that gives up by itself says why, so it gets the time to do that."""
    given = dict(itertools.pairwise(words)).get("--timeout", "")
    return max(1500, (durations.parse(given) or 0) + 300)


def well(name: str) -> dict[str, Any]:
    """A cluster's status once everything in it is well: a busy machine makes a pod miss a probe now and then."""
    seen: list[dict[str, Any]] = []

    def is_well() -> bool:
        seen.append(json.loads(hcp("local", "status", "--name", name, "-o", "json", check=False).stdout))
        return bool(seen[-1]["well"])

    try:
        eventually_sync(is_well, seconds=300)
    except AssertionError as error:
        raise AssertionError(f"cluster {name} is not well: {seen[-1]['wrong']}") from error
    return seen[-1]


class Cluster:
    """A running embedded cluster and a namespace-free kubectl for it."""

    def __init__(self, name: str, folder: Path) -> None:
        from hcp import payload

        kubernetes = payload.find("kubernetes-1.36")
        assert kubernetes is not None
        self.name = name
        self.kubectl_binary = kubernetes / "bin" / "kubectl"
        self.kubeconfig = folder / f"{name}.kubeconfig"
        self.kubeconfig.write_text(hcp("local", "kubeconfig", "--name", name).stdout)

    def kubectl(self, *words: str, stdin: str | None = None, check: bool = True, seconds: float = 600) -> str:
        done = subprocess.run(
            [str(self.kubectl_binary), f"--kubeconfig={self.kubeconfig}", *words],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
        )
        if check and done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout

    def get(self, *words: str) -> Any:
        return json.loads(self.kubectl("get", *words, "-o", "json"))

    def apply(self, *objects: dict[str, Any]) -> None:
        self.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))

    def image(self) -> str:
        """An image with Python in it, by digest: the router's own."""
        found = self.get("deployment", "router-default", "-n", "openshift-ingress")
        image: str = found["spec"]["template"]["spec"]["containers"][0]["image"]
        return image

    def ask(self, ns: str, pod: str, url: str, seconds: int = 3) -> str:
        """What a pod gets from a URL: the body, or `failed: …`."""
        program = (
            "import sys,urllib.request as u\n"
            "try: print(u.urlopen(sys.argv[1], timeout=int(sys.argv[2])).read().decode()[:200])\n"
            "except Exception as e: print('failed:', e)"
        )
        return self.kubectl("exec", "-n", ns, pod, "--", "python3", "-c", program, url, str(seconds)).strip()

    def wait_pods(self, ns: str, *pods: str, seconds: int = 120) -> None:
        self.kubectl(
            "wait", "-n", ns, "--for=condition=Ready", f"--timeout={seconds}s", *(f"pod/{pod}" for pod in pods),
            seconds=seconds + 20,
        )  # fmt: skip


def server(ns: str, name: str, image: str, **more: Any) -> dict[str, Any]:
    """A pod that answers every HTTP request on 8080 with its own name, and can also ask others."""
    program = (
        "import http.server as h\n"
        "class H(h.BaseHTTPRequestHandler):\n"
        "    def do_GET(self):\n"
        f"        b=b'I am {name}'\n"
        "        self.send_response(200); self.send_header('Content-Length', str(len(b))); self.end_headers()\n"
        "        self.wfile.write(b)\n"
        "    def log_message(self, *a): pass\n"
        "import socket; h.ThreadingHTTPServer.address_family = socket.AF_INET6 if socket.has_dualstack_ipv6() else "
        "socket.AF_INET\n"
        "h.ThreadingHTTPServer(('', 8080), H).serve_forever()\n"
    )
    container = {
        "name": "server",
        "image": image,
        "command": ["python3", "-c", program],
        "ports": [{"containerPort": 8080}],
        "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1},
        **more.pop("container", {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": ns, "labels": {"app": name}},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [container], **more},
    }


def service(ns: str, name: str, kind: str = "ClusterIP") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": ns},
        "spec": {"type": kind, "selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080, "name": "http"}]},
    }


def namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def open_url(url: str, host: str = "") -> str:
    """What this machine gets from a URL: the body, or `failed: …`."""
    request = urllib.request.Request(url, headers={"Host": host} if host else {})
    try:
        with urllib.request.urlopen(request, timeout=3) as answer:
            body: bytes = answer.read()
            return body.decode()
    except (urllib.error.URLError, OSError) as error:
        return f"failed: {error}"
