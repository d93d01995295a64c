"""The node's part of the pod network, filled in the way containerd and the node's unit do."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hcp.ignition.document import read_data_url
from hcp.ignition.podnetwork import pod_network_document, refusals, template

_LOOP = re.compile(r"\[\{\{range \$i, \$one := \.(\w+)}}\{\{if \$i}}, \{\{end}}(.*?)\{\{end}}]")


def filled(ranges: list[str], routes: list[str]) -> dict[str, Any]:
    values = {"PodCIDRRanges": ranges, "Routes": routes}

    def loop(found: re.Match[str]) -> str:
        return f"[{', '.join(found[2].replace('{{$one}}', value) for value in values[found[1]])}]"

    bridge: dict[str, Any] = json.loads(_LOOP.sub(loop, template().replace("@MTU@", "1350")))["plugins"][0]
    return bridge


@pytest.mark.parametrize(
    ("ranges", "routes"),
    [(["10.132.2.0/23"], ["0.0.0.0/0"]), (["10.132.2.0/23", "fd01::/64"], ["0.0.0.0/0", "::/0"])],
)
def test_a_node_gives_its_pods_addresses_of_its_own_range(ranges: list[str], routes: list[str]) -> None:
    bridge = filled(ranges, routes)
    assert bridge["ipam"]["ranges"] == [[{"subnet": cidr}] for cidr in ranges]
    assert bridge["ipam"]["routes"] == [{"dst": cidr} for cidr in routes]
    assert bridge["mtu"] == 1350


@pytest.mark.parametrize(("networks", "left"), [(["10.132.0.0/14"], 1350), (["10.132.0.0/14", "fd01::/48"], 1330)])
def test_packets_leave_room_for_the_headers_around_them(tmp_path: Path, networks: list[str], left: int) -> None:
    made = pod_network_document(networks)
    (unit,) = made["systemd"]["units"]
    source = next(f for f in made["storage"]["files"] if f["path"].endswith(".json"))
    (tmp_path / "mtu").write_text("1400\n")
    (tmp_path / "source").write_bytes(read_data_url(source["contents"]["source"]))
    (line,) = [line for line in unit["contents"].splitlines() if line.startswith("ExecStart=sh")]
    script = line.removeprefix("ExecStart=sh -c '").removesuffix("'").replace("$$", "$")
    for path, name in (
        ("/sys/class/net/eth0/mtu", "mtu"),
        (source["path"], "source"),
        ("/etc/cni/pod-network.template", "out"),
    ):
        script = script.replace(path, shlex.quote(str(tmp_path / name)))
    subprocess.run(["sh", "-ec", script], check=True)
    assert f'"mtu": {left},' in (tmp_path / "out").read_text()


def test_a_network_of_somebody_else_is_left_to_them() -> None:
    made = pod_network_document([])
    assert made["storage"]["files"] == [] and made["systemd"]["units"] == []


def test_service_addresses_nobody_knows_are_refused() -> None:
    text = refusals(["172.31.0.0/16", "fd02::/112"])
    assert text.count("ip daddr 172.31.0.0/16 reject") == text.count("ip6 daddr fd02::/112 reject") == 2
