"""Ignition and the first boot of a disk themselves, on its root in a folder; no virtual machine is needed."""

from __future__ import annotations

import http.server
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.e2e.node_root import first_boot, make_root, run_in
from tests.support.e2e.own_configuration import document
from tests.support.proxy import running

from hcp import pki
from hcp.ignition.pointer import Proxy, pointer

pytestmark = pytest.mark.timeout(1800)
HOST = "ignition.example.com"
UNITS = "etc/systemd/system"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A disk after its first boot with everything that a pool's owner may ask for."""
    made = make_root(tmp_path_factory.mktemp("node"))
    done = first_boot(made, document(arguments=True))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return made


def test_units_are_on_masked_and_changed(root: Path) -> None:
    units = root / UNITS
    for place in (
        "multi-user.target.wants/kernel-arguments.service",
        "kubelet.service.requires/kernel-arguments.service",
        "multi-user.target.wants/settle.service",
        "multi-user.target.wants/scheduler-options.service",
        "multi-user.target.wants/report.service",
        "timers.target.wants/tick.timer",
    ):
        assert (units / place).is_symlink(), place
    assert (units / "ssh.socket").readlink() == Path("/dev/null")
    assert "Nice=5" in (units / "containerd.service.d" / "10-own.conf").read_text()
    assert not (units / "multi-user.target.wants" / "greet@me.service").exists(), "the node switches it on"


def test_systemd_understands_our_units(root: Path) -> None:
    names = ("kernel-arguments", "settle", "scheduler-options")
    done = run_in(root, "systemd-analyze", "verify", *(f"/{UNITS}/{name}.service" for name in names))
    said = [line for line in done.stderr.splitlines() if any(name in line for name in names)]
    assert said == []


def test_an_instance_of_a_template_can_be_switched_on(root: Path) -> None:
    done = run_in(root, "systemctl", "enable", "greet@me.service")
    assert done.returncode == 0, done.stderr
    assert (root / UNITS / "multi-user.target.wants" / "greet@me.service").is_symlink()


def test_users_groups_and_files_are_there(root: Path) -> None:
    passwd, groups = (root / "etc" / "passwd").read_text(), (root / "etc" / "group").read_text()
    assert "ops:x:1600:" in passwd and "builders:x:1500:ops" in groups
    keys = [path.read_text() for path in (root / "home" / "ops" / ".ssh").rglob("*") if path.is_file()]
    assert any("AAAA own" in text for text in keys)
    assert (root / "etc" / "sysctl.d" / "95-tuning.conf").read_text() == "vm.swappiness = 7\n"
    assert (root / "usr" / "local" / "bin" / "report").stat().st_mode & 0o777 == 0o755


def test_the_scripts_are_ones_that_the_nodes_shell_reads(root: Path) -> None:
    for script in ("settle", "kernel-arguments"):
        done = run_in(root, "sh", "-n", f"/usr/lib/hcp/{script}")
        assert done.returncode == 0, done.stderr


def test_kernel_arguments_are_written_into_the_disks_boot_loader(root: Path) -> None:
    (root / "cmdline").write_text("root=/dev/vda1 rw\n")
    (root / "usr" / "local" / "bin" / "sleep").write_text("#!/bin/sh\n")  # the machine would restart here
    (root / "usr" / "local" / "bin" / "sleep").chmod(0o755)
    done = run_in(root, "/usr/lib/hcp/kernel-arguments", HCP_CMDLINE="/cmdline")
    assert done.returncode == 0 and "restarting with the kernel arguments" in done.stdout, done.stderr
    [line] = [one for one in (root / "boot/extlinux/extlinux.conf").read_text().splitlines() if "APPEND" in one]
    assert line.endswith(" hugepagesz=2M hugepages=3 mitigations=auto printk.time=1")
    (root / "cmdline").write_text(line.partition("APPEND ")[2] + "\n")
    assert run_in(root, "/usr/lib/hcp/kernel-arguments", HCP_CMDLINE="/cmdline").stdout == ""


class Bootstrap(http.server.BaseHTTPRequestHandler):
    """Gives the document to everybody."""

    def do_GET(self) -> None:
        body = document(arguments=False).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def bootstrap(tmp_path: Path) -> Iterator[tuple[int, bytes]]:
    """Its port and CA; its name is known to the proxy alone."""
    ca = pki.new_ca("bootstrap")
    leaf = pki.issue(ca, HOST, dns=(HOST,), usage="server")
    (tmp_path / "tls.pem").write_bytes(leaf.cert_pem + leaf.key_pem)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "tls.pem")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Bootstrap)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1], ca.cert_pem
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_machine_fetches_its_document_through_the_proxy(tmp_path: Path, bootstrap: tuple[int, bytes]) -> None:
    """With no other way out: neither a route nor a name server."""
    port, authority = bootstrap
    root = make_root(tmp_path)
    (tmp_path / "proxy").mkdir()
    with running(tmp_path / "proxy", HOST) as proxy:
        given = Proxy(https=proxy.url, direct=("10.0.0.0/8",))
        text = pointer(f"{HOST}:{port}", authority, "token", "clusters/demo", "aa", given)
        done = first_boot(root, text, inside=proxy.inside)
        assert done.returncode == 0, done.stdout[-3000:]
        assert proxy.asked_for(f"{HOST}:{port}")
    assert (root / "etc" / "sysctl.d" / "99-own.conf").exists()
