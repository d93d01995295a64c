"""The commands before and after the suite: what a person would type. Pure; they are only named here."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.options import Options
from conformance.suite import IMAGES

OPERATOR_PARTS = ("image-hcp", "release-1.36")
Command = list[str]


def management(options: Options) -> list[Command]:
    """An embedded cluster that can run virtual machines."""
    return [["local", "up", "--name", options.name, "--profile", "kubevirt"]]


def images(options: Options, *, hosted: bool) -> list[Command]:
    """Test images into the registry that nodes pull from; the operator's too where a hosted cluster has to be made."""
    return [["local", "push", "--name", options.name, *(OPERATOR_PARTS if hosted else ()), *IMAGES]]


def hosted(options: Options) -> list[Command]:
    """The operator and a hosted cluster of two small nodes."""
    access = ("--kubeconfig", str(options.management))
    return [
        ["install", *access, "--wait-until-available"],
        [
            *("create", "cluster", "kubevirt", "--name", options.cluster, *access),
            *("--pull-secret", str(options.pull_secret), "--node-pool-replicas", "2"),
            *("--memory", "2Gi", "--cores", "1", "--root-volume-size", "16"),
            *("--control-plane-availability-policy", "SingleReplica"),
        ],
    ]


def ready(options: Options) -> list[Command]:
    access = ("--kubeconfig", str(options.management))
    return [
        ["wait", "nodepool", options.cluster, "--timeout", "40m", *access],
        ["wait", "cluster", options.cluster, "--timeout", "20m", *access],
    ]


@dataclass(frozen=True)
class Made:
    """What this run made or started, and so takes away again."""

    management: bool = False
    started: bool = False
    """The management cluster was there, stopped."""
    hosted: bool = False


def removal(options: Options, made: Made) -> list[Command]:
    """Only what this run made goes; with the management cluster goes everything on it."""
    if options.keep:
        return []
    if made.management:
        return [["local", "down", "--name", options.name, "--purge"]]
    commands = []
    if made.hosted:
        access = ("--kubeconfig", str(options.management))
        commands.append(["destroy", "cluster", "kubevirt", "--name", options.cluster, *access])
    if made.started:
        commands.append(["local", "down", "--name", options.name])
    return commands
