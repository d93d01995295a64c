"""MachineConfig, KubeletConfig and ContainerRuntimeConfig of a pool, on a node of ours."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from tests.unit.ignition.test_ignition_node import files_of, given_input, units_of

from hcp.errors import HcpError
from hcp.ignition.machineconfig import interpret, machine_config
from hcp.ignition.node import node_document


def raw(config: dict[str, Any], **spec: Any) -> str:
    manifest = machine_config("50-mine", {"ignition": {"version": "3.4.0"}, **config})
    manifest["spec"].update(spec)
    return yaml.safe_dump(manifest)


def runtime(**fields: Any) -> str:
    return yaml.safe_dump({"kind": "ContainerRuntimeConfig", "spec": {"containerRuntimeConfig": fields}})


def test_a_node_without_configuration_of_its_own_has_nothing_of_this() -> None:
    document = node_document(given_input())
    assert set(units_of(document)) == {"kubelet.service"}
    assert not [path for path in files_of(document) if "/hcp/" in path or "conf.d/30" in path]


def test_kernel_arguments_of_both_places_reach_the_node_in_order() -> None:
    text = raw({"kernelArguments": {"shouldExist": ["b=2"]}}, kernelArguments=["a=1"], kernelType="default")
    document = node_document(given_input(text))
    assert files_of(document)["/etc/hcp/kernel-arguments"] == "a=1 b=2\n"
    assert "RequiredBy=kubelet.service" in units_of(document)["kernel-arguments.service"]["contents"]


def test_files_that_were_read_before_they_came_are_read_again() -> None:
    paths = ["/etc/sysctl.d/99-own.conf", "/etc/modules-load.d/own.conf", "/etc/motd"]
    text = raw({"storage": {"files": [{"path": path, "contents": {"source": "data:,x"}} for path in paths]}})
    script = files_of(node_document(given_input(text)))["/usr/lib/hcp/settle"]
    assert script.index("systemd-modules-load") < script.index("systemd-sysctl") and "tmpfiles" not in script
    plain = raw({"storage": {"files": [{"path": "/etc/motd", "contents": {"source": "data:,x"}}]}})
    assert "settle.service" not in units_of(node_document(given_input(plain)))


def test_units_that_run_already_follow_too() -> None:
    units = [
        {"name": "ssh.socket", "mask": True},
        {"name": "hcp-growroot.service", "enabled": False},
        {"name": "systemd-journald.service", "dropins": [{"name": "10-x.conf", "contents": "[Service]"}]},
        {"name": "mine.service", "enabled": True, "contents": "[Service]\nExecStart=true"},
        {"name": "tunnel@.service", "contents": "[Service]\nExecStart=true"},
        {"name": "tunnel@a.service", "enabled": True},
    ]
    document = node_document(given_input(raw({"systemd": {"units": units}})))
    script, told = files_of(document)["/usr/lib/hcp/settle"], units_of(document)
    assert "stop 'ssh.socket'" in script and "stop 'hcp-growroot.service'" in script
    assert "for name in 'mine.service' 'systemd-journald.service'; do" in script
    assert "enable --now 'tunnel@a.service'" in script
    assert told["mine.service"]["enabled"] is True and told["ssh.socket"]["mask"] is True
    assert "enabled" not in told["tunnel@a.service"], "the disk's first boot would stumble over an instance"


def test_what_ignition_refuses_is_refused_before_a_machine_boots_with_it() -> None:
    for config in (
        {"storage": {"files": [{"path": "etc/x"}]}},
        {"storage": {"files": [{"path": "/etc/x", "mode": 99999}]}},
        {"storage": {"links": [{"path": "/etc/\nx"}]}},
        {"systemd": {"units": [{"name": "no-suffix"}]}},
        {"systemd": {"units": [{"name": "a';reboot;'.service"}]}},
        {"systemd": {"units": [{"name": "a.service", "enabled": "yes"}]}},
        {"systemd": {"units": [{"name": "a.service", "dropins": [{"name": "../x"}]}]}},
        {"passwd": {"users": [{"name": "a:b"}]}},
    ):
        with pytest.raises(HcpError, match="50-mine"):
            interpret(raw(config))


def test_what_has_no_effect_is_named_with_its_document() -> None:
    config = {
        "storage": {"disks": [{"device": "/dev/vdb"}]},
        "ignition": {"version": "3.2.0", "proxy": {"noProxy": ["a"]}},
    }
    asked = interpret(raw(config))
    assert asked.without_effect == [
        "config.storage.disks of MachineConfig '50-mine'",
        "config.ignition.proxy of MachineConfig '50-mine'",
    ]
    kubelet = {"kind": "KubeletConfig", "spec": {"somethingNew": True, "logLevel": 4}}
    asked = interpret(yaml.safe_dump(kubelet))
    assert asked.without_effect == ["somethingNew of a KubeletConfig"] and asked.kubelet_verbosity == 4


def test_what_the_disk_cannot_be_is_refused_by_name() -> None:
    for spec, named in (
        ({"extensions": ["usbguard", "kerberos"]}, "extensions usbguard, kerberos"),
        ({"kernelType": "realtime"}, "kernelType"),
        ({"fips": True}, "fips"),
        ({"osImageURL": "x"}, "osImageURL"),
    ):
        with pytest.raises(HcpError, match=named):
            interpret(raw({}, **spec))


def test_settings_of_the_runtime() -> None:
    text = runtime(pidsLimit=512, logSizeMax="16Mi", logLevel="debug", defaultRuntime="runc")
    files = files_of(node_document(given_input(text)))
    kubelet = yaml.safe_load(files["/etc/kubernetes/kubelet.yaml"])
    assert (kubelet["podPidsLimit"], kubelet["containerLogMaxSize"]) == (512, "16Mi")
    assert "level = 'debug'" in files["/etc/containerd/conf.d/30-runtime.toml"]


def test_settings_of_a_runtime_that_is_not_there_are_refused_by_name() -> None:
    for fields in (
        {"overlaySize": "8G"},
        {"defaultRuntime": "crun"},
        {"pidsLimit": "many"},
        {"pidsLimit": True},
        {"logSizeMax": "-1"},
        {"logLevel": "info'\n[x"},
        {"other": 1},
    ):
        with pytest.raises(HcpError, match=next(iter(fields))):
            interpret(runtime(**fields))


def test_the_kubelets_verbosity() -> None:
    text = yaml.safe_dump({"kind": "KubeletConfig", "spec": {"logLevel": 6}})
    unit = units_of(node_document(given_input(text)))["kubelet.service"]["contents"]
    assert "--v=6\n" in unit
    for bad in (0, 11, "5", True):
        with pytest.raises(HcpError, match="logLevel"):
            interpret(yaml.safe_dump({"kind": "KubeletConfig", "spec": {"logLevel": bad}}))
