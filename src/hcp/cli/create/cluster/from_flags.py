"""From the flags of `create cluster` to ClusterOptions, with every check that needs no cluster."""

from __future__ import annotations

from os import urandom

from hcp.api import defaults, names
from hcp.cli.create.nodepool.from_flags import platform_of, worker_options
from hcp.cli.create.options import ClusterOptions, WorkerOptions
from hcp.cli.engine import files, grammar, quantity
from hcp.cli.engine.command import Call, UsageError
from hcp.cli.engine.terminal import warn

ETCD_KEY_BYTES = 32
MTU = (576, 9216)
CLASS_NAMES = {"storage": "StorageClassName", "volume snapshot": "VolumeSnapshotClassName"}


def is_render(call: Call) -> bool:
    return call.switch("render") or bool(call.text("render-into"))


def cluster_options(call: Call) -> ClusterOptions:
    """Every refusal that can be made without a cluster is made here, before anything is contacted."""
    _required(call)
    options = ClusterOptions()
    options.platform = platform_of(call)
    options.name, options.namespace = call.text("name"), call.text("namespace")
    _names(options)
    options.release_image = call.text("release-image")
    options.infra_id = call.text("infra-id") or names.new_infra_id(options.name)
    problem = names.label_problem(options.infra_id)
    if problem:
        allowed = "lower-case letters, digits and '-', at most 63"
        raise grammar.refuse("infra-id", options.infra_id, f"it {problem}", allowed)
    options.base_domain = _subdomain(call, "base-domain")
    options.paused_until = _paused_until(call.text("pausedUntil"))
    _control_plane(call, options)
    _network(call, options)
    if options.platform == names.PLATFORM_NONE:
        _own_machines(call, options)
    else:
        _publishing(call, options)
        _infra(call, options)
    workers = worker_options(call)
    _annotations(call, options)
    _files(call, options)
    options.etcd_key = urandom(ETCD_KEY_BYTES)
    if call.number("node-pool-replicas") >= 0:
        options.workers = _workers(call, options, workers)
    return options


def _required(call: Call) -> None:
    if not call.text("name"):
        raise UsageError("--name is required", hint="--name takes the name of the hosted cluster, for example demo")
    if not call.text("pull-secret"):
        raise UsageError(
            "--pull-secret is required",
            hint='--pull-secret takes a file with registry credentials; {"auths": {}} is enough where none are needed',
        )
    if call.switch("wait") and call.number("node-pool-replicas") < 1:
        raise UsageError(
            "--wait needs --node-pool-replicas above 0",
            cause=f"--node-pool-replicas is {call.number('node-pool-replicas')}",
            hint=f"to wait for a cluster without nodes: {call.prog} wait cluster {call.text('name')} --control-plane",
        )
    if call.switch("render-sensitive") and not is_render(call):
        warn("--render-sensitive does nothing without --render")
    for flag in ("wait", "version-check"):
        if call.switch(flag) and is_render(call):
            warn(f"--{flag} does nothing with --render")


def _names(options: ClusterOptions) -> None:
    problem = names.label_problem(options.namespace)
    if problem:
        raise grammar.refuse("namespace", options.namespace, f"it {problem}", "the name of a namespace")
    problems = names.cluster_name_problems(options.namespace, options.name)
    if problems:
        allowed = "lower-case letters, digits and '-', so that NAMESPACE-NAME has at most 63 characters"
        raise grammar.refuse("name", options.name, "; ".join(problems), allowed)


def _subdomain(call: Call, flag: str) -> str:
    value = call.text(flag)
    problem = names.subdomain_problem(value) if value else None
    if problem:
        what = "KubeAPIServerDNSName failed DNS validation: " if flag == "kas-dns-name" else ""
        raise grammar.refuse(flag, value, f"{what}{value!r} {problem}", "a DNS name such as lab.example.com")
    return value


def _paused_until(value: str) -> str:
    if value in ("", "true"):
        return value
    from hcp.cli.create.rfc3339 import is_date

    if not is_date(value):
        why = f"invalid pausedUntil value {value!r}"
        raise grammar.refuse("pausedUntil", value, why, "true or a date such as 2030-01-31T12:00:00Z")
    return value


def _control_plane(call: Call, options: ClusterOptions) -> None:
    options.availability_policy = call.text("control-plane-availability-policy")
    options.infra_availability_policy = call.text("infra-availability-policy")
    options.etcd_storage_class = call.text("etcd-storage-class")
    size = call.text("etcd-storage-size") or defaults.ETCD_SIZE
    try:
        options.etcd_storage_size = quantity.canonical(size)
        positive = quantity.whole(size) > 0
    except ValueError as error:
        why = f"failed to parse etcd storage size: {error}"
        raise grammar.refuse("etcd-storage-size", size, why, quantity.RULE) from None
    if not positive:
        raise grammar.refuse("etcd-storage-size", size, "it is not above 0", quantity.RULE)
    options.node_selector = grammar.selector("node-selector", call.pairs("node-selector"))
    options.pods_labels = grammar.selector("pods-labels", call.pairs("pods-labels"))
    options.tolerations = [grammar.toleration(value) for value in call.items("toleration")]
    options.fips = call.switch("fips")
    options.feature_set = call.text("feature-set")
    options.olm_catalog_placement = call.text("olm-catalog-placement")
    options.olm_disable_default_sources = call.switch("olm-disable-default-sources")
    options.kas_dns_name = _subdomain(call, "kas-dns-name")
    disabled, enabled = call.items("disable-cluster-capabilities"), call.items("enable-cluster-capabilities")
    both = sorted(set(disabled) & set(enabled))
    if both:
        raise UsageError(
            f"the capability {both[0]} is in both --disable-cluster-capabilities and --enable-cluster-capabilities",
            hint="name each capability in one of the two",
        )
    if "Ingress" in disabled and "Console" not in disabled:
        raise grammar.refuse(
            "disable-cluster-capabilities", ",".join(disabled), "Ingress without Console", "Ingress,Console together"
        )
    options.capabilities_disabled, options.capabilities_enabled = disabled, enabled


def _machines_of_both_families(options: ClusterOptions) -> None:
    """Nothing here can see what the infra cluster's network does."""
    has_six = any(":" in one for one in (*options.cluster_cidrs, *options.service_cidrs))
    if has_six and options.platform == names.PLATFORM_KUBEVIRT and options.network_type == "OVNKubernetes":
        warn(
            "the release's own network needs nodes with IPv6 addresses: KubeVirt gives machines on the network of pods "
            "none by itself, so they have to come from that network (OVN-Kubernetes announces them)"
        )


def _network(call: Call, options: ClusterOptions) -> None:
    options.network_type = call.text("network-type")
    options.cluster_cidrs, options.service_cidrs = call.items("cluster-cidr"), call.items("service-cidr")
    if call.switch("default-dual"):
        options.cluster_cidrs = [*options.cluster_cidrs, defaults.CLUSTER_CIDR_V6]
        options.service_cidrs = [*options.service_cidrs, defaults.SERVICE_CIDR_V6]
    options.machine_cidrs = call.items("machine-cidr")
    flags = ("cluster-cidr", "service-cidr", "machine-cidr")
    if any(call.changed(flag) for flag in flags):
        from hcp.cli.create import cidr

        for text in cidr.check({flag: call.items(flag) for flag in flags}):
            warn(text)
    _machines_of_both_families(options)
    for flag in ("disable-multi-network", "allocate-node-cidrs"):
        if call.switch(flag) and options.network_type != "Other":
            raise UsageError(
                f"--{flag} is only possible with --network-type Other",
                cause=f"--network-type is {options.network_type}",
            )
    options.disable_multi_network = call.switch("disable-multi-network")
    options.allocate_node_cidrs = call.switch("allocate-node-cidrs")
    options.ovn_mtu = call.number("ovn-kubernetes-mtu")
    if options.ovn_mtu:
        if options.network_type != "OVNKubernetes":
            raise UsageError(
                "--ovn-kubernetes-mtu is only possible with --network-type OVNKubernetes",
                cause=f"--network-type is {options.network_type}",
            )
        if not MTU[0] <= options.ovn_mtu <= MTU[1]:
            raise grammar.refuse(
                "ovn-kubernetes-mtu", str(options.ovn_mtu), "out of range", f"a number from {MTU[0]} to {MTU[1]}"
            )


def _own_machines(call: Call, options: ClusterOptions) -> None:
    """Machines somewhere else: the control plane is on node ports, whose address they reach without any DNS."""
    options.base_domain = options.base_domain or "example.com"
    options.storage_class_mappings, options.snapshot_class_mappings = [], []
    if call.switch("expose-through-load-balancer") and not call.text("external-api-server-address"):
        return
    options.publishing = "NodePort"
    options.api_server_address = call.text("external-api-server-address")
    if not options.api_server_address and is_render(call):
        warn("without --external-api-server-address the rendered address is empty; fill it in before applying")


def _publishing(call: Call, options: ClusterOptions) -> None:
    named = bool(call.text("external-dns-domain"))
    options.api_server_by_route = named or call.text("publish") == "route"
    if named:
        warn("--external-dns-domain publishes the API server with a Route; no host names are set from it on KubeVirt")
    options.publishing = call.text("service-publishing-strategy")
    options.api_server_address = call.text("api-server-address")
    if options.api_server_address and options.publishing != "NodePort":
        raise UsageError(
            "--api-server-address is only possible with --service-publishing-strategy NodePort",
            cause=f"the strategy is {options.publishing}",
        )
    if options.publishing == "NodePort" and not options.api_server_address and is_render(call):
        warn("without --api-server-address the rendered NodePort address is empty; fill it in before applying")


def _infra(call: Call, options: ClusterOptions) -> None:
    for flag, kind in (
        ("infra-storage-class-mapping", "storage"),
        ("infra-volumesnapshot-class-mapping", "volume snapshot"),
    ):
        values = call.items(flag)
        grammar.at_most(flag, values, grammar.MAX_MAPPINGS)
        mappings = [grammar.class_mapping(flag, kind, CLASS_NAMES[kind], value) for value in values]
        guests = [mapping[f"guest{CLASS_NAMES[kind]}"] for mapping in mappings]
        for name in sorted({name for name in guests if guests.count(name) > 1}):
            warn(f"--{flag} maps to the class {name} of the hosted cluster more than once")
        if kind == "storage":
            options.storage_class_mappings = mappings
        else:
            options.snapshot_class_mappings = mappings
    namespace, path = call.text("infra-namespace"), call.text("infra-kubeconfig-file")
    if namespace and not path:
        raise UsageError(
            "--infra-namespace is given but --infra-kubeconfig-file is missing",
            hint="both together name the cluster for the VMs; without both the VMs run on the management cluster",
        )
    if path and not namespace:
        raise UsageError(
            "--infra-kubeconfig-file is given but --infra-namespace is missing",
            hint="name the existing namespace on that cluster in which the VMs shall run",
        )
    problem = names.label_problem(namespace) if namespace else None
    if problem:
        raise grammar.refuse("infra-namespace", namespace, f"it {problem}", "the name of a namespace")
    options.infra_namespace = namespace


def _annotations(call: Call, options: ClusterOptions) -> None:
    options.annotations = grammar.key_values("annotations", "annotation", call.items("annotations"))
    options.labels = grammar.key_values("labels", "label", call.items("labels"))
    patch = options.annotations.get(names.ANNOTATION_VM_JSON_PATCH)
    if patch is not None:
        from hcp.cli.create.jsonpatch import problem

        why = problem(patch)
        if why:
            value = f"{names.ANNOTATION_VM_JSON_PATCH}={patch}"
            allowed = 'a JSON list such as [{"op": "replace", "path": "/spec/template/spec/…", "value": 1}] there'
            raise grammar.refuse("annotations", value, why, allowed)
    image = call.text("control-plane-operator-image")
    if image:
        options.annotations[names.ANNOTATION_CONTROL_PLANE_OPERATOR_IMAGE] = image


def _files(call: Call, options: ClusterOptions) -> None:
    options.pull_secret = files.pull_secret(call.text("pull-secret"))
    if call.text("ssh-key"):
        options.ssh_public_key = files.ssh_key(call.text("ssh-key"))
    elif call.switch("generate-ssh"):
        from hcp.cli.create.sshkey import generate

        options.ssh_public_key, options.ssh_private_key = generate()
    if call.text("additional-trust-bundle"):
        options.trust_bundle = files.trust_bundle(call.text("additional-trust-bundle"))
    options.image_content_sources = []
    if call.text("image-content-sources"):
        options.image_content_sources = files.image_content_sources(call.text("image-content-sources"))
    if options.platform == names.PLATFORM_KUBEVIRT and call.text("infra-kubeconfig-file"):
        path = call.text("infra-kubeconfig-file")
        options.infra_kubeconfig = files.kubeconfig("infra-kubeconfig-file", path, lenient=is_render(call))


def _workers(call: Call, options: ClusterOptions, workers: WorkerOptions) -> WorkerOptions:
    workers.name = workers.cluster_name = options.name
    workers.replicas = call.number("node-pool-replicas")
    workers.drain_timeout = call.duration("node-drain-timeout")
    workers.detach_timeout = call.duration("node-volume-detach-timeout")
    workers.paused_until = options.paused_until
    variants = options.annotations.get(names.ANNOTATION_UNSUPPORTED_RHCOS)
    if variants is not None:
        workers.annotations = {names.ANNOTATION_UNSUPPORTED_RHCOS: variants}
    return workers
