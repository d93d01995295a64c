"""A DNS zone of somebody's own, served by the CoreDNS of an embedded cluster out of a zone file."""

from __future__ import annotations

import json

from tests.support.e2e.local_tools import Cluster

_NAMESPACE = "kube-system"
_BLOCK = """
{zone}:53 {{
    errors
    file /etc/coredns/{zone}.db
}}
"""
_HEAD = """$TTL 5
@ IN SOA ns.{zone}. owner.{zone}. {serial} 60 60 600 5
@ IN NS ns.{zone}.
ns IN A 192.0.2.53
"""


class Zone:
    def __init__(self, management: Cluster, name: str) -> None:
        self._management, self.name, self._serial = management, name, 0

    def publish(self, *records: str) -> None:
        """The zone with these lines and no others; CoreDNS is started anew, so that it counts at once."""
        self._serial += 1
        live = self._management.get("configmap", "coredns", "-n", _NAMESPACE)["data"]
        block = _BLOCK.format(zone=self.name)
        text = live["Corefile"] if block in live["Corefile"] else live["Corefile"] + block
        lines = "".join(f"{record}\n" for record in records)
        file = f"$ORIGIN {self.name}.\n{_HEAD.format(zone=self.name, serial=self._serial)}{lines}"
        patch = json.dumps({"data": {"Corefile": text, f"{self.name}.db": file}})
        kubectl = self._management.kubectl
        kubectl("patch", "configmap", "coredns", "-n", _NAMESPACE, "--type=merge", "-p", patch)
        kubectl("rollout", "restart", "deployment/coredns", "-n", _NAMESPACE)
        kubectl("rollout", "status", "deployment/coredns", "-n", _NAMESPACE, "--timeout=300s")
