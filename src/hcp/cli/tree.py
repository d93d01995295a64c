"""Which commands exist. One line each, so that starting one command costs nothing for the others.

A node may be both a command and a group (`install` and `install render`).
"""

from __future__ import annotations

# path: (module with the COMMAND table, one line of help)
COMMANDS: dict[str, tuple[str, str]] = {
    "create cluster kubevirt": ("create.cluster.kubevirt", "Create a hosted cluster with KubeVirt workers"),
    "create cluster none": ("create.cluster.none", "Create a hosted cluster for machines of your own"),
    "create nodepool kubevirt": ("create.nodepool.kubevirt", "Add a pool of KubeVirt workers to a hosted cluster"),
    "create nodepool none": ("create.nodepool.none", "Add a pool for machines of your own to a hosted cluster"),
    "create config-drive": (
        "create.config_drive.command",
        "Write what a machine of your own needs to join a hosted cluster",
    ),
    "create kubeconfig": ("create.kubeconfig", "Print the kubeconfig of one or all hosted clusters"),
    "login": ("login.command", "Log in to a hosted cluster and write a kubeconfig"),
    "login token": ("login.token", "Print a token of a login, renewed if need be"),
    "destroy cluster kubevirt": ("destroy.cluster.kubevirt", "Delete a hosted cluster and all that belongs to it"),
    "destroy cluster none": ("destroy.cluster.none", "Delete a hosted cluster whose machines are your own"),
    "destroy nodepool": ("destroy.nodepool", "Delete a node pool"),
    "get clusters": ("get.clusters", "List hosted clusters"),
    "get nodepools": ("get.nodepools", "List node pools"),
    "status": ("status.command", "Show one hosted cluster on one screen, and what it waits for"),
    "wait cluster": ("wait.cluster", "Wait until a hosted cluster is ready or gone"),
    "wait nodepool": ("wait.nodepool", "Wait until a node pool has its nodes or is gone"),
    "scale nodepool": ("scale.nodepool", "Change how many nodes a node pool has"),
    "upgrade cluster": ("upgrade.cluster", "Move a hosted cluster's control plane to another release"),
    "upgrade nodepool": ("upgrade.nodepool", "Move a node pool to another release"),
    "hibernate": ("hibernate.command", "Put a hosted cluster to sleep, now or by a schedule"),
    "wake": ("hibernate.wake", "Wake a hosted cluster that sleeps"),
    "vm console": ("vm.console", "Open the serial console of a node's virtual machine"),
    "rotate cluster": ("rotate.cluster", "Give a hosted cluster new certificate authorities while it runs"),
    "rotate kubeconfig": (
        "rotate.kubeconfig",
        "Revoke the administrator's kubeconfig of a hosted cluster and make a new one",
    ),
    "backup create": ("backup.create", "Back up a hosted cluster"),
    "backup list": ("backup.list", "List the backups in a store"),
    "backup verify": ("backup.verify", "Try a backup: restore it into a throw-away etcd and compare"),
    "backup delete": ("backup.delete", "Delete backups from a store"),
    "backup schedule": ("backup.schedule", "Back up a hosted cluster again and again"),
    "restore": ("restore.command", "Bring a hosted cluster back from a backup"),
    "dump cluster": ("dump.cluster", "Collect everything about a hosted cluster for a bug report"),
    "install": ("install.command", "Install the operator on a management cluster"),
    "install render": ("install.render", "Print what install would apply"),
    "uninstall": ("uninstall", "Remove the operator from a management cluster"),
    "doctor": ("doctor", "Check that a management cluster can host clusters"),
    "rbac external-infra": ("rbac.external_infra", "Print the rights an external infra cluster has to grant"),
    "rbac node-guard": ("rbac.node_guard", "Print an AdminNetworkPolicy that keeps virtual machines off nodes"),
    "demo": ("demo", "Show the whole thing on this machine"),
    "local up": ("local.up", "Start an embedded management cluster on this machine"),
    "local upgrade": ("local.upgrade", "Move an embedded cluster to a newer Kubernetes"),
    "local status": ("local.status", "Show an embedded cluster's processes and addresses"),
    "local logs": ("local.logs", "Show the logs of an embedded cluster's processes"),
    "local down": ("local.down", "Stop an embedded cluster"),
    "local kubeconfig": ("local.kubeconfig", "Print the kubeconfig of an embedded cluster"),
    "local push": ("local.push", "Put images into an embedded cluster's registry"),
    "local node list": ("local.node.list", "List the nodes of an embedded cluster"),
    "local node add": ("local.node.add", "Let nodes join an embedded cluster"),
    "local node remove": ("local.node.remove", "Drain a node of an embedded cluster and take it away"),
    "local node stop": ("local.node.stop", "Stop a node of an embedded cluster, or pull its plug"),
    "local node start": ("local.node.start", "Start a node of an embedded cluster that was stopped"),
    "local list": ("local.list", "List embedded clusters"),
    "payload build": ("payload.build", "Build binaries, images and releases"),
    "payload list": ("payload.list", "List what is built and what is missing"),
    "payload timeline": ("payload.timeline", "Show when each part was built and how busy the machine was"),
    "payload check": ("payload.check", "Check that built programs find their libraries on any Linux"),
    "payload clean": ("payload.clean", "Remove built artifacts"),
    "payload export": ("payload.export", "Pack built artifacts for another machine"),
    "payload import": ("payload.import_", "Unpack artifacts built on another machine"),
    "release push": ("release.push", "Publish the operator and releases in a registry of your own"),
    "release info": ("release.info", "Show what a release is made of"),
    "release list": ("release.list", "List the releases in a registry or on this machine"),
    "release diff": ("release.diff", "Show what is different between two releases"),
    "release graph": ("release.graph", "Show which releases lead to which, or write the graph as a file"),
    "release verify": ("release.verify", "Check that an image was signed with a key"),
    "mirror": ("mirror.command", "Mirror releases, operators and images into a registry, or over a disk"),
    "mirror delete": ("mirror.delete", "Delete what an image set names from a registry"),
    "operator run": ("operator.run", "Run the operator (what its Deployment starts)"),
    "router run": ("router.run", "Run the router for Routes (what its Deployment starts)"),
    "ignition-server run": ("ignition_server.run", "Run the node bootstrap server (what its Deployment starts)"),
    "csi local": ("csi.local", "Run the storage driver of an embedded cluster (what its Deployment starts)"),
    "version": ("version.command", "Print the client's and the server's version"),
    "completion": ("completion", "Print a shell completion script"),
}

GROUPS: dict[str, str] = {
    "create": "Create hosted clusters, node pools and kubeconfigs",
    "create cluster": "Create a hosted cluster",
    "create nodepool": "Add a node pool to a hosted cluster",
    "destroy": "Delete hosted clusters and node pools",
    "destroy cluster": "Delete a hosted cluster",
    "get": "List hosted clusters and node pools",
    "wait": "Wait until a hosted cluster or node pool is ready or gone",
    "scale": "Change how many nodes there are",
    "upgrade": "Move to another release",
    "vm": "The virtual machines that nodes run in",
    "rotate": "Replace keys and certificates of a hosted cluster",
    "backup": "Backups of hosted clusters",
    "dump": "Collect data for a bug report",
    "rbac": "Print manifests of rights and policies for owners of clusters",
    "local": "An embedded management cluster on this machine",
    "local node": "The nodes of an embedded cluster",
    "payload": "Binaries, images and releases that the embedded cluster and releases are made of",
    "release": "Releases: what they are made of, and publishing them",
    "operator": "The operator process",
    "router": "The router process",
    "ignition-server": "The node bootstrap server process",
    "csi": "The processes of storage drivers",
}

# Run by Deployments, not by people: left out of help and completion of their parents.
HIDDEN = ("operator", "router", "ignition-server", "csi")


def children(path: str) -> list[str]:
    """The names one level below a path, in the order of the table."""
    prefix = f"{path} " if path else ""
    names: dict[str, None] = {}
    for command in COMMANDS:
        if command.startswith(prefix) and command != path:
            names[command[len(prefix) :].partition(" ")[0]] = None
    return list(names)


def describe(path: str) -> str:
    return COMMANDS[path][1] if path in COMMANDS else GROUPS.get(path, "")
