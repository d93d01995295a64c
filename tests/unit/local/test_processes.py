"""Command lines: pure functions of a spec."""

from __future__ import annotations

from pathlib import Path

import pytest

from hcp.local.controlplane import certs
from hcp.local.controlplane.processes import control_plane
from hcp.local.host.resolvers import machine_nameservers
from hcp.local.node import files as node_files
from hcp.local.node import processes as node_processes
from hcp.local.state.layout import Layout
from hcp.local.state.nodes import first
from hcp.local.state.spec import Spec
from hcp.local.supervisor import processes
from hcp.local.supervisor.processes import Probe, Process

NAMES = (
    *("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "containerd"),
    *("runc", "bridge", "registry"),
)
BINARIES = {name: Path("/payload/bin") / name for name in NAMES}
API = Spec("t", "api", None, 7001, 7002, 7003)
NODE = Spec("t", "cluster", 5)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "t")


def argv(found: list[Process], name: str) -> list[str]:
    return next(process.argv for process in found if process.name == name)


def test_api_profile_is_two_processes_on_the_loopback(layout: Layout) -> None:
    found = control_plane(API, layout, BINARIES, {"etcd": "3.6.5"})
    assert [process.name for process in found] == ["etcd", "kube-apiserver"]
    assert found[0].version == "3.6.5"
    server = argv(found, "kube-apiserver")
    assert "--bind-address=127.0.0.1" in server
    assert "--secure-port=7001" in server
    assert "--listen-client-urls=https://127.0.0.1:7002" in argv(found, "etcd")


@pytest.mark.parametrize("spec", [API, NODE])
def test_nobody_anonymous_and_no_static_tokens(layout: Layout, spec: Spec) -> None:
    server = argv(control_plane(spec, layout, BINARIES, {}), "kube-apiserver")
    assert "--anonymous-auth=false" in server
    assert "--authorization-mode=Node,RBAC" in server
    assert not any("token-auth-file" in word for word in server)
    assert any(word.startswith("--requestheader-client-ca-file=") for word in server)
    assert "--client-cert-auth" in argv(control_plane(spec, layout, BINARIES, {}), "etcd")


def test_node_processes_start_after_what_they_need(layout: Layout) -> None:
    found = [*control_plane(NODE, layout, BINARIES, {}), *node_processes.processes(first(NODE), layout, BINARIES, {})]
    seen: set[str] = set()
    for process in found:
        assert set(process.after) <= seen, process.name
        seen.add(process.name)
    assert {"containerd", "kubelet", "kube-proxy", "registry", "load-balancer"} <= seen


def test_kubelet_is_closed_and_roomy(layout: Layout) -> None:
    config = node_files.kubelet(first(NODE), layout)
    assert config["authentication"]["anonymous"] == {"enabled": False}
    assert config["authorization"] == {"mode": "Webhook"}
    assert config["cgroupRoot"] == "/hcp-t"
    assert config["maxPods"] == 500
    assert config["clusterDNS"] == ["10.197.0.10"]


def test_registry_is_read_only_for_everybody_but_root(layout: Layout) -> None:
    public = node_files.registry(layout, "10.88.5.2")
    assert public["storage"]["maintenance"]["readonly"] == {"enabled": True}
    assert public["http"]["addr"] == "10.88.5.2:5000"
    assert "tls" in public["http"]
    private = node_files.registry(layout, "", writable="push.sock")
    assert private["http"]["net"] == "unix"
    assert "readonly" not in private["storage"]["maintenance"]


def test_containerd_without_the_right_to_lower_oom_scores(layout: Layout) -> None:
    text = node_files.containerd(layout, Path("/r/runc"), Path("/c"), "pause@sha256:1", keep_oom_score=True)
    assert "restrict_oom_score_adj = true" in text
    assert 'sandbox = "pause@sha256:1"' in text
    import tomllib

    assert tomllib.loads(text)["version"] == 3


def test_resolvers_on_the_loopback_are_not_for_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "/etc/resolv.conf": "nameserver 127.0.0.53\noptions edns0\n",
        "/run/systemd/resolve/resolv.conf": "# made by resolved\nnameserver 9.9.9.9\nnameserver fd00::1\n",
    }
    monkeypatch.setattr(Path, "read_text", lambda path: files[str(path)])
    assert machine_nameservers() == ["9.9.9.9"]


def test_order_sheet_round_trip() -> None:
    wanted = [Process("a", ["/bin/a", "-x"], probe=Probe(url="http://127.0.0.1/")), Process("b", ["b"], after=["a"])]
    assert processes.parse(processes.dump(wanted)) == wanted


def test_certificates_are_made_once_and_name_the_right_things(layout: Layout) -> None:
    from cryptography import x509

    layout.make()
    certs.ensure(layout, NODE)
    first = {path.name: path.read_bytes() for path in layout.pki.iterdir()}
    certs.ensure(layout, NODE)
    assert {path.name: path.read_bytes() for path in layout.pki.iterdir()} == first
    server = x509.load_pem_x509_certificate(first["apiserver.crt"])
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {str(ip) for ip in names.get_values_for_type(x509.IPAddress)} == {"127.0.0.1", "10.88.5.2", "10.197.0.1"}
    assert all(path.stat().st_mode & 0o077 == 0 for path in layout.pki.glob("*.key"))
    assert layout.kubeconfig.stat().st_mode & 0o077 == 0
    assert "https://10.88.5.2:6443" in layout.kubeconfig.read_text()
