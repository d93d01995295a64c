"""Packets sent from inside pods: small Python programs run by kubectl exec, since the images carry no network tools."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from tests.support.e2e.local_tools import Cluster
from tests.support.eventually import eventually_sync


class Kubectl(Protocol):
    """A management cluster or a hosted one."""

    def kubectl(self, *words: str) -> str:
        """Its answer."""


_HEAR = """
import socket, sys
port, family = int(sys.argv[1]), int(sys.argv[2])
s = socket.socket(socket.AF_INET6 if family == 6 else socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", port))
print("listening", flush=True)
while True:
    print(s.recv(100).decode(), flush=True)
"""
_SAY = """
import socket, sys
host, port, word, source, link = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5]
if ":" in host:
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    where = (host, port, 0, socket.if_nametoindex(link))
else:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    where = (host, port)
if source:
    s.bind((source, 0))
try:
    for _ in range(3):
        s.sendto(word.encode(), where)
    print("sent")
except OSError as error:
    print(error)
"""
_TAKE = """
import fcntl, socket, struct, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def address(text):
    return struct.pack("<HH4s8x", socket.AF_INET, 0, socket.inet_aton(text))
name = (sys.argv[2] + ":" + sys.argv[1].replace(".", "")[-6:]).encode()
fcntl.ioctl(s, 0x8916, struct.pack("16s16s8x", name, address(sys.argv[1])))
fcntl.ioctl(s, 0x891C, struct.pack("16s16s8x", name, address("255.255.255.255")))
"""
_ARP = """
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0806))
s.bind((sys.argv[2], 0))
mac, ip = s.getsockname()[4], socket.inet_aton(sys.argv[1])
everybody, nobody = b"\\xff" * 6, b"\\0" * 6
head = everybody + mac + b"\\x08\\x06" + b"\\0\\x01\\x08\\0\\x06\\x04"
for operation, target in ((b"\\0\\x01", nobody), (b"\\0\\x02", everybody)):
    s.send(head + operation + mac + ip + target + ip)
"""
_NEIGHBOURS = """
import socket, struct, sys, time
s = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
index = socket.if_nametoindex(sys.argv[1])
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
for number in range(3):
    s.sendto(struct.pack("!BBHHH", 128, 0, 0, 77, number), ("ff02::1", 0, 0, index))
    end = time.monotonic() + 1
    while (left := end - time.monotonic()) > 0:
        s.settimeout(left)
        try:
            packet, sender = s.recvfrom(1000)
        except TimeoutError:
            break
        if packet[0] == 129:
            print(sender[0].partition("%")[0])
"""
_SPEAK_IPV6 = """
import pathlib, sys, time
setting = pathlib.Path("/proc/sys/net/ipv6/conf") / sys.argv[1] / "disable_ipv6"
if setting.read_text().strip() != "0":
    setting.write_text("0")
end = time.monotonic() + 60
while time.monotonic() < end:
    for line in open("/proc/net/if_inet6"):
        number, _, _, _, flags, name = line.split()
        if name == sys.argv[1] and number.startswith("fe80") and not int(flags, 16) & 0x40:  # not tentative any more
            print(number)
            sys.exit()
    time.sleep(0.2)
"""
_CODE = """
import ssl, sys, urllib.error, urllib.request
try:
    context = ssl._create_unverified_context()
    asked = urllib.request.Request(sys.argv[1], data=b"" if sys.argv[2] == "POST" else None, method=sys.argv[2])
    print(urllib.request.urlopen(asked, timeout=20, context=context).status)
except urllib.error.HTTPError as error:
    print(error.code)
except OSError as error:
    print("failed:", error)
"""
_KNOCK = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=float(sys.argv[3])).close()
    print("open")
except OSError as error:
    print("closed:", error)
"""


def run(cluster: Kubectl, ns: str, pod: str, program: str, *words: str) -> str:
    return _exec(cluster, ns, pod, "python3", "-c", program, *words).strip()


def _exec(cluster: Kubectl, ns: str, pod: str, *words: str) -> str:
    """On a busy machine an emulated node may lose a call; that is not what is asked here."""
    for _ in range(2):
        with contextlib.suppress(subprocess.TimeoutExpired):
            return cluster.kubectl("exec", "-n", ns, pod, "--", *words)
    return cluster.kubectl("exec", "-n", ns, pod, "--", *words)


@contextmanager
def heard(cluster: Cluster, ns: str, pod: str, port: int, family: int = 4) -> Iterator[Callable[[], set[str]]]:
    """A UDP listener in a pod; gives what it has heard so far, each word once."""
    command = [str(cluster.kubectl_binary), f"--kubeconfig={cluster.kubeconfig}", "exec", "-n", ns, pod, "--"]
    log = cluster.kubeconfig.with_name(f"heard-{pod}-{port}")
    with log.open("w") as out:
        process = subprocess.Popen([*command, "python3", "-c", _HEAR, str(port), str(family)], stdout=out)
    try:
        eventually_sync(lambda: "listening" in log.read_text(), f"{pod} listening")
        yield lambda: set(log.read_text().split()) - {"listening"}
    finally:
        process.terminate()
        process.wait()


def datagram(
    cluster: Kubectl, ns: str, pod: str, to: tuple[str, int], word: str, source: str = "", link: str = "eth0"
) -> None:
    """Leaves the pod for certain: a packet that was never sent would show nothing."""
    assert run(cluster, ns, pod, _SAY, to[0], str(to[1]), word, source, link) == "sent"


def take_address(cluster: Kubectl, ns: str, pod: str, address: str, link: str = "eth0") -> None:
    """The pod gives itself one more address."""
    run(cluster, ns, pod, _TAKE, address, link)


def claim_by_arp(cluster: Kubectl, ns: str, pod: str, address: str, link: str = "eth0") -> None:
    """The pod tells everybody on its wire that an address is at its place."""
    run(cluster, ns, pod, _ARP, address, link)


def default_link(cluster: Kubectl, ns: str, pod: str) -> str:
    """The link that leads to the world."""
    lines = _exec(cluster, ns, pod, "cat", "/proc/net/route").splitlines()
    return next(line.split()[0] for line in lines if line.split()[1] == "00000000")


def link_locals(cluster: Kubectl, ns: str, pod: str) -> set[str]:
    """All IPv6 link-local addresses in the pod's network namespace."""
    lines = _exec(cluster, ns, pod, "cat", "/proc/net/if_inet6").splitlines()
    numbers = [int(line.split()[0], 16) for line in lines if line.startswith("fe80")]
    return {str(ipaddress.IPv6Address(number)) for number in numbers}


def speak_ipv6(cluster: Kubectl, ns: str, pod: str, link: str) -> str:
    """The link-local address of a link, switched on where it was off: root can, and an attacker would."""
    number = run(cluster, ns, pod, _SPEAK_IPV6, link)
    assert number, f"{pod} gets no link-local address on {link}"
    return str(ipaddress.IPv6Address(int(number, 16)))


def neighbours(cluster: Kubectl, ns: str, pod: str, link: str) -> set[str]:
    """Who answers when everybody on the wire is asked."""
    return set(run(cluster, ns, pod, _NEIGHBOURS, link).split())


def ask_from(cluster: Kubectl, ns: str, pod: str, url: str, method: str = "GET") -> str:
    """The HTTP status a pod gets, or `failed: …`."""
    return run(cluster, ns, pod, _CODE, url, method)


def closed_here(host: str, port: int) -> bool:
    """Whether this machine cannot connect."""
    try:
        socket.create_connection((host, port), timeout=3).close()
    except OSError:
        return True
    return False


def closed(cluster: Kubectl, ns: str, pod: str, host: str, port: int, seconds: float = 3) -> bool:
    """Whether a pod cannot connect."""
    said = run(cluster, ns, pod, _KNOCK, host, str(port), str(seconds))
    assert said.startswith(("open", "closed")), said
    return said.startswith("closed")


def answers(cluster: Kubectl, ns: str, pod: str, host: str, port: int) -> bool:
    """Whether a pod can connect, however busy the machine is."""
    with contextlib.suppress(AssertionError):
        eventually_sync(lambda: not closed(cluster, ns, pod, host, port, 10), "an answer", 60)
        return True
    return False


def kept_off(cluster: Kubectl, ns: str, pod: str, target: tuple[str, int], known: tuple[str, int]) -> bool:
    """Whether a pod cannot connect to a target, while it can, in the same time, to an address known to answer it.

    Else a network that is down, or a machine that is slow, would look like a policy.
    """
    for seconds in (3, 10, 30):
        if not closed(cluster, ns, pod, *target, seconds):
            return False
        if not closed(cluster, ns, pod, *known, seconds):
            return True
    raise AssertionError(f"{pod} does not reach {known[0]}:{known[1]} either, so nothing is shown")


METADATA = "169.254.169.254"
_METADATA = """
import fcntl, http.server, socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
address = struct.pack("<HH4s8x", socket.AF_INET, 0, socket.inet_aton("169.254.169.254"))
mask = struct.pack("<HH4s8x", socket.AF_INET, 0, socket.inet_aton("255.255.255.255"))
fcntl.ioctl(s, 0x8916, struct.pack("16s16s8x", b"lo:9", address))
fcntl.ioctl(s, 0x891C, struct.pack("16s16s8x", b"lo:9", mask))
http.server.ThreadingHTTPServer(("169.254.169.254", 80), http.server.SimpleHTTPRequestHandler).serve_forever()
"""


def metadata_listener(ns: str, image: str) -> dict[str, object]:
    """A pod on the node's network that answers as a cloud does: a listener of ours, there is no real one."""
    container = {
        "name": "listener",
        "image": image,
        "command": ["python3", "-c", _METADATA],
        "workingDir": "/var/empty",
        "securityContext": {"runAsUser": 0, "capabilities": {"add": ["NET_ADMIN"]}},
        "readinessProbe": {"tcpSocket": {"host": METADATA, "port": 80}, "periodSeconds": 1},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "metadata", "namespace": ns},
        "spec": {"hostNetwork": True, "terminationGracePeriodSeconds": 0, "containers": [container]},
    }
