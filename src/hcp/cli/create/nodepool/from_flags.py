"""From the worker flags to WorkerOptions, with every check that needs no cluster."""

from __future__ import annotations

from hcp.api.names import PLATFORM_KUBEVIRT, PLATFORM_NONE, subdomain_problem
from hcp.cli.create.options import WorkerOptions
from hcp.cli.engine import grammar, quantity
from hcp.cli.engine.command import Call, UsageError
from hcp.cli.engine.terminal import warn

MIN_DISK = 16
SMALL_MEMORY = 2**30


def platform_of(call: Call) -> str:
    """The last word of `create cluster kubevirt` and its like, as the API spells it."""
    return PLATFORM_NONE if call.command.path.endswith(" none") else PLATFORM_KUBEVIRT


def worker_options(call: Call) -> WorkerOptions:
    """Reads and checks the flags in flags.py; names and replicas are the caller's."""
    options = WorkerOptions()
    options.platform = platform_of(call)
    options.namespace = call.text("namespace")
    options.arch = call.text("arch")
    options.release_image = call.text("release-image")
    options.auto_repair = call.switch("auto-repair")
    options.annotations = {}
    if options.platform == PLATFORM_NONE:
        # HyperShift's client writes it, and so do we: machines of one's own are replaced by nobody else.
        options.upgrade_type = call.text("node-upgrade-type") or "InPlace"
        return options
    options.upgrade_type = call.text("node-upgrade-type") or "Replace"
    _virtual_machine(call, options)
    return options


def _virtual_machine(call: Call, options: WorkerOptions) -> None:
    options.cores = call.number("cores")
    if options.cores < 1:
        raise grammar.refuse("cores", str(options.cores), "the number of cores must be at least 1", "a number from 1")
    size = call.number("root-volume-size")
    if size < MIN_DISK:
        why = f"the root volume size [{size}] must be at least {MIN_DISK} Gi"
        raise grammar.refuse("root-volume-size", str(size), why, f"a number of Gi from {MIN_DISK}")
    options.root_volume_size = quantity.canonical(f"{size}Gi")
    options.memory = _memory(call.text("memory"))
    options.root_volume_storage_class = _class_name("root-volume-storage-class", call.text("root-volume-storage-class"))
    options.root_volume_access_modes = grammar.access_modes(call.text("root-volume-access-modes"))
    options.root_volume_volume_mode = call.text("root-volume-volume-mode")
    options.root_volume_cache_strategy = call.text("root-volume-cache-strategy")
    options.multiqueue = call.text("network-multiqueue")
    options.qos_class = call.text("qos-class")
    options.container_disk = call.text("containerdisk")
    options.node_selector = grammar.selector("vm-node-selector", call.pairs("vm-node-selector"))
    devices, networks = call.items("host-device-name"), call.items("additional-network")
    grammar.at_most("host-device-name", devices, grammar.MAX_DEVICES)
    grammar.at_most("additional-network", networks, grammar.MAX_NETWORKS)
    options.host_devices = [grammar.host_device(value) for value in devices]
    options.additional_networks = [grammar.additional_network(value) for value in networks]
    options.attach_default_network = call.switch("attach-default-network")
    if not options.attach_default_network and not networks:
        raise UsageError(
            "missing --additional-network",
            cause="--attach-default-network=false leaves the VMs without any network",
            hint="add --additional-network name:NAMESPACE/NETWORK",
        )
    _doubles("host-device-name", [str(device["deviceName"]) for device in options.host_devices])
    _doubles("additional-network", [network["name"] for network in options.additional_networks])
    for network in options.additional_networks:
        if "/" not in network["name"]:
            warn(f"--additional-network {network['name']} has no namespace: it is looked up where the VMs run")


def _memory(text: str) -> str:
    if not text:
        return ""
    try:
        size = quantity.whole(text)
        found = quantity.canonical(text)
    except ValueError as error:
        raise grammar.refuse("memory", text, f'invalid memory quantity "{text}"', f"{error}") from None
    if size <= 0:
        raise grammar.refuse("memory", text, f'invalid memory quantity "{text}": it is not above 0', quantity.RULE)
    if size < SMALL_MEMORY:
        warn(f"--memory {text} is less than a node needs to start; 4Gi and more is usual")
    return found


def _class_name(flag: str, name: str) -> str:
    problem = subdomain_problem(name) if name else None
    if problem:
        raise grammar.refuse(flag, name, f"the class name {name!r} {problem}", "the name of a storage class")
    return name


def _doubles(flag: str, values: list[str]) -> None:
    for value in sorted({value for value in values if values.count(value) > 1}):
        warn(f"--{flag} names {value} more than once")
