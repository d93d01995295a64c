"""A node's kubelet configuration as the kubelet itself reads it: it is started, tells what it read, and ends."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import yaml
from tests.unit.ignition.test_ignition_node import files_of, given_input
from tests.unit.ignition.test_kubelet_config import computed, profile, raw

from hcp import payload
from hcp.ignition.node import node_document


def read_by_kubelet(folder: Path, *specs: dict[str, Any]) -> dict[str, Any]:
    configuration = yaml.safe_load(files_of(node_document(given_input(raw(*specs))))["/etc/kubernetes/kubelet.yaml"])
    # It gets as far as the certificates, which are not there, and touches nothing of this machine.
    configuration["authentication"]["x509"]["clientCAFile"] = str(folder / "none")
    configuration["failCgroupV1"] = False
    (folder / "kubelet.yaml").write_text(yaml.safe_dump(configuration))
    program = payload.ensure(["kubernetes-1.36"])["kubernetes-1.36"] / "bin" / "kubelet"
    words = [f"--config={folder}/kubelet.yaml", f"--config-dir={folder}/kubelet.conf.d", f"--root-dir={folder}/root"]
    done = subprocess.run(
        [program, *words, f"--cert-dir={folder}/pki", "--v=6"], capture_output=True, text=True, check=False, timeout=120
    )
    assert f"open {folder}/none" in done.stderr, done.stderr[-2000:]
    _, _, told = done.stderr.replace("\n\t", "\n").partition('"KubeletConfiguration" configuration=<\n')
    found: dict[str, Any] = json.JSONDecoder().raw_decode(told)[0]
    return found


def test_what_a_node_computes_is_added_to_what_is_said(tmp_path: Path) -> None:
    asked = {"autoSizingReserved": True, "kubeletConfig": {"systemReserved": {"pid": "1000"}}, **profile("Old")}
    computed(tmp_path, 8192, 4)
    found = read_by_kubelet(tmp_path, asked)
    assert found["SystemReserved"] == {"cpu": "80m", "memory": "1843Mi", "pid": "1000"}
    assert found["TLSMinVersion"] == "VersionTLS10" and "TLS_RSA_WITH_AES_128_CBC_SHA" in found["TLSCipherSuites"]
