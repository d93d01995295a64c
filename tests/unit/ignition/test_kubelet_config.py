"""KubeletConfig besides the kubelet's own fields: TLS profiles, and what a node reserves by its size."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.ignition.test_ignition_node import files_of, given_input, units_of

from hcp.errors import HcpError
from hcp.ignition.document import read_data_url
from hcp.ignition.machineconfig import interpret
from hcp.ignition.node import node_document, rendered
from hcp.ignition.reserved import FOLDER, RESOURCES, reserved_document


def raw(*specs: dict[str, Any]) -> str:
    return yaml.safe_dump_all(
        {"kind": "KubeletConfig", "metadata": {"name": f"{number}"}, "spec": spec} for number, spec in enumerate(specs)
    )


def kubelet_of(*specs: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(
        files_of(node_document(given_input(raw(*specs))))["/etc/kubernetes/kubelet.yaml"]
    )
    return found


def profile(kind: str, **custom: Any) -> dict[str, Any]:
    return {"tlsSecurityProfile": {"type": kind, **({"custom": custom} if custom else {})}}


def test_a_volume_does_not_wait_for_the_nodes_next_status() -> None:
    """Looked at often, so that volumes move at once; reported rarely, so that an idle node writes nothing."""
    own = kubelet_of()
    assert (own["nodeStatusUpdateFrequency"], own["nodeStatusReportFrequency"]) == ("1s", "5m0s")
    assert kubelet_of({"kubeletConfig": {"nodeStatusUpdateFrequency": "4s"}})["nodeStatusUpdateFrequency"] == "4s"


def test_profiles_become_fields_of_the_kubelet() -> None:
    modern, old = kubelet_of(profile("Modern")), kubelet_of(profile("Old"))
    assert modern["tlsMinVersion"] == "VersionTLS13" and "tlsCipherSuites" not in modern
    assert old["tlsMinVersion"] == "VersionTLS10" and "TLS_RSA_WITH_AES_128_CBC_SHA" in old["tlsCipherSuites"]
    between = kubelet_of(profile("Intermediate"))
    assert between["tlsMinVersion"] == "VersionTLS12" and len(between["tlsCipherSuites"]) == 9


def test_a_profile_of_ones_own() -> None:
    asked = profile("Custom", minTLSVersion="VersionTLS12", ciphers=["ECDHE-RSA-AES128-GCM-SHA256", "DHE-RSA-X"])
    assert kubelet_of(asked)["tlsCipherSuites"] == ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]
    assert interpret(raw(asked)).without_effect == ["cipher DHE-RSA-X in tlsSecurityProfile of a KubeletConfig"]


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        (profile("Newest"), "type"),
        (profile("Custom"), "names no ciphers"),
        (profile("Custom", ciphers=["AES128-SHA"]), "HTTP/2"),
        (profile("Custom", minTLSVersion="1.2", ciphers=["ECDHE-RSA-AES128-GCM-SHA256"]), "minTLSVersion"),
        ({"autoSizingReserved": "yes"}, "autoSizingReserved"),
        ({"kubeletConfig": {"systemReserved": "500Mi"}}, "systemReserved"),
    ],
)
def test_what_would_keep_a_kubelet_from_starting_is_refused(asked: dict[str, Any], named: str) -> None:
    with pytest.raises(HcpError, match=named):
        interpret(raw(asked))


def test_fields_of_the_kubelet_itself_win_over_the_profile() -> None:
    asked = {**profile("Modern"), "kubeletConfig": {"tlsMinVersion": "VersionTLS12"}}
    assert kubelet_of(asked)["tlsMinVersion"] == "VersionTLS12"


def test_a_node_that_reserves_by_its_size_has_a_unit_for_it() -> None:
    document = node_document(given_input(raw({"autoSizingReserved": True})))
    units = units_of(document)
    assert f"--config-dir={FOLDER} \\\n" in units["kubelet.service"]["contents"]
    assert "RequiredBy=kubelet.service" in units["reserved.service"]["contents"]
    assert (
        "cpu:" in files_of(document)["/usr/lib/hcp/reserved"]
        and "memory:" in files_of(document)["/usr/lib/hcp/reserved"]
    )


def test_what_is_reserved_by_name_is_not_computed() -> None:
    asked = {"autoSizingReserved": True, "kubeletConfig": {"systemReserved": {"memory": "1Gi"}}}
    script = files_of(node_document(given_input(raw(asked))))["/usr/lib/hcp/reserved"]
    assert "\n  cpu: " in script and "\n  memory: " not in script
    asked["kubeletConfig"]["systemReserved"]["cpu"] = "1"  # type: ignore[index]
    assert "reserved.service" not in units_of(node_document(given_input(raw(asked))))


def test_the_last_document_decides() -> None:
    both = ({"autoSizingReserved": True}, {"autoSizingReserved": False})
    assert "reserved.service" not in units_of(node_document(given_input(raw(*both))))
    assert "reserved.service" in units_of(node_document(given_input(raw(*both[::-1], {"logLevel": 3}))))


def test_nodes_that_ask_for_none_of_it_have_the_document_of_before() -> None:
    plain = {"kubeletConfig": {"maxPods": 42}, "logLevel": 4}
    without = {**plain, "autoSizingReserved": False}
    assert rendered(given_input(raw(plain))) == rendered(given_input(raw(without)))
    text = rendered(given_input(raw(plain))).decode()
    assert "config-dir" not in text and "reserved" not in text and "CipherSuites" not in text


@pytest.mark.parametrize(
    ("mebibytes", "processors", "memory", "cpu"),
    [
        (2048, 1, "512Mi", "60m"),
        (4096, 2, "1024Mi", "70m"),
        (8192, 4, "1843Mi", "80m"),
        (16384, 8, "2662Mi", "90m"),
        (131072, 64, "9543Mi", "230m"),
        (262144, 1, "12164Mi", "60m"),
    ],
)
def test_shares_are_large_of_the_first_and_small_of_the_rest(
    mebibytes: int, processors: int, memory: str, cpu: str, tmp_path: Path
) -> None:
    found = computed(tmp_path, mebibytes, processors)
    assert found["kind"] == "KubeletConfiguration" and found["apiVersion"] == "kubelet.config.k8s.io/v1beta1"
    assert found["systemReserved"] == {"cpu": cpu, "memory": memory}


def test_a_machine_that_grew_reserves_more_at_its_next_start(tmp_path: Path) -> None:
    assert computed(tmp_path, 2048, 1) != computed(tmp_path, 4096, 2) != computed(tmp_path, 4096, 1)


def computed(folder: Path, mebibytes: int, processors: int) -> Any:
    """What the unit's program writes on a machine of this size."""
    [script] = reserved_document(RESOURCES)["storage"]["files"]
    meminfo = folder / "meminfo"
    meminfo.write_text(f"MemTotal:       {mebibytes * 1024} kB\nMemFree:         1024 kB\nHugetlb: 0 kB\n")
    environment = {
        "PATH": os.environ["PATH"],
        "HCP_FOLDER": str(folder / "kubelet.conf.d"),
        "HCP_MEMINFO": str(meminfo),
        "HCP_PROCESSORS": str(processors),
    }
    text = read_data_url(script["contents"]["source"]).decode()
    subprocess.run(["sh", "-c", text], env=environment, check=True)
    return yaml.safe_load((folder / "kubelet.conf.d" / "10-reserved.conf").read_text())
