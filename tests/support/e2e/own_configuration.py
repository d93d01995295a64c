"""Configuration of a pool's owner that uses everything nodes follow, with a unit that tells what became of it."""

from __future__ import annotations

import json
from typing import Any

import yaml

from hcp.ignition.apiproxy import ApiProxy
from hcp.ignition.document import data_url
from hcp.ignition.machineconfig import machine_config
from hcp.ignition.node import NodeInput, rendered
from hcp.ignition.tuned import read_tuning
from hcp.nodepool.config import ConfigInput, generate
from hcp.pki.certs import new_ca

PROFILE = """\
[sysctl]
vm.swappiness=7
[scheduler]
sched_migration_cost_ns=4000000
"""
BOOTLOADER = "[bootloader]\ncmdline_own=hugepagesz=2M hugepages=3\n"
REPORT = """\
say() { echo "REPORT $1=$2"; }
say cmdline "$(cat /proc/cmdline)"
say hugepages "$(cat /proc/sys/vm/nr_hugepages)"
say swappiness "$(cat /proc/sys/vm/swappiness)"
say map_count "$(cat /proc/sys/vm/max_map_count)"
say module "$(grep -c '^dummy ' /proc/modules)"
mount -t debugfs debugfs /sys/kernel/debug
say migration_cost "$(cat /sys/kernel/debug/sched/migration_cost_ns)"
say ssh "$(systemctl is-active ssh.socket)"
say kubelet "$(systemctl is-active kubelet.service)"
say verbosity "$(tr '\\0' ' ' </proc/$(pidof -s kubelet)/cmdline | grep -o -e '--v=[0-9]*')"
say instance "$(systemctl is-active greet@me.service)"
say timer "$(systemctl is-active tick.timer)"
say dropin "$(systemctl show --property Nice --value containerd.service)"
say journal "$(systemctl show --property Nice --value systemd-journald.service) $(ps -o ni= -C systemd-journal)"
say user "$(id ops)"
say group "$(getent group builders)"
cd /home/ops/.ssh
say keys "$(cat authorized_keys.d/ignition authorized_keys 2>/dev/null | head -n 1)"
say containerd "$(containerd config dump | sed -n "s/^ *level = //p")"
echo "REPORT end="
"""
CONTAINERD = {"kind": "ContainerRuntimeConfig", "spec": {"containerRuntimeConfig": {"logLevel": "warn"}}}
KUBELET = {"kind": "KubeletConfig", "spec": {"logLevel": 4}}


def text_file(path: str, text: str, mode: int = 420) -> dict[str, Any]:
    return {"path": path, "mode": mode, "overwrite": True, "contents": {"source": data_url(text)}}


def service(command: str, more: str = "") -> str:
    head = f"[Unit]\n{more}\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart={command}\n"
    return f"{head}StandardOutput=journal+console\n[Install]\nWantedBy=multi-user.target\n"


def dropin(unit: str, text: str) -> dict[str, Any]:
    return {"name": unit, "dropins": [{"name": "10-own.conf", "contents": text}]}


UNITS = [
    {
        "name": "report.service",
        "enabled": True,
        "contents": service("report", "After=kubelet.service settle.service greet@me.service tick.timer"),
    },
    {"name": "ssh.socket", "mask": True},
    dropin("containerd.service", "[Service]\nNice=5\n"),
    dropin("systemd-journald.service", "[Service]\nNice=3\n"),
    {"name": "greet@.service", "contents": service("echo hello %i")},
    {"name": "greet@me.service", "enabled": True},
    {"name": "tick.service", "contents": "[Service]\nExecStart=true\n"},
    {
        "name": "tick.timer",
        "enabled": True,
        "contents": "[Timer]\nOnBootSec=1d\n[Install]\nWantedBy=timers.target\n",
    },
]
USER = {"name": "ops", "uid": 1600, "groups": ["builders"], "sshAuthorizedKeys": ["ssh-ed25519 AAAA own"]}
CONFIG = {
    "ignition": {"version": "3.4.0"},
    "storage": {
        "files": [
            text_file("/etc/sysctl.d/99-own.conf", "vm.max_map_count=300000\n"),
            text_file("/etc/modules-load.d/own.conf", "dummy\n"),
            text_file("/usr/local/bin/report", f"#!/bin/sh\n{REPORT}", 493),
        ]
    },
    "systemd": {"units": UNITS},
    "passwd": {"groups": [{"name": "builders", "gid": 1500}], "users": [USER]},
}


def document(*, arguments: bool) -> str:
    """The node's document; with kernel arguments the machine restarts once."""
    machine = machine_config("80-own", CONFIG)
    profile = PROFILE
    if arguments:
        machine["spec"]["kernelArguments"] = ["mitigations=auto", "printk.time=1"]
        profile += BOOTLOADER
    spec = {"profile": [{"name": "own", "data": profile}], "recommend": [{"profile": "own"}]}
    config = generate(
        ConfigInput(
            api_proxy=ApiProxy("172.20.0.1", 6443, "192.0.2.1", 6443, "registry.example.com/haproxy:1"),
            fips=False,
            ssh_key="",
            image_content_sources=[],
            user_configs={"own": "\n---\n".join(yaml.safe_dump(item) for item in (machine, CONTAINERD, KUBELET))},
            version="1.36",
            pull_secret_name="pull",
            trust_bundle_name="",
            configuration={},
            pod_networks=["10.132.0.0/14"],
            service_networks=["172.31.0.0/16"],
            tuning=read_tuning({"t": json.dumps({"kind": "Tuned", "spec": spec})}),
        )
    )
    nowhere = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "clusters": [{"name": "x", "cluster": {"server": "https://192.0.2.1:6443"}}],
        "users": [{"name": "x", "user": {"token": "x"}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
    }
    authority = new_ca("x").cert_pem.decode()
    given = NodeInput(config.raw, yaml.safe_dump(nowhere), authority, ["172.31.0.0/16"], "registry.example.com/pause:1")
    return rendered(given).decode()
