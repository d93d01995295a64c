"""What the tour does, in order. Pure: it names commands, it runs none.

On a first run parts have to be built, so the order is that of usefulness: the management cluster, a hosted control
plane, then virtual machines. What later steps need is built in the background while earlier ones can already be used.
Where official builds are fetched, compilers work while these come. KubeVirt, which takes the longest, starts as soon as
the management cluster takes pods, while its add-ons, the operator and the hosted control plane come up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hcp.local.addons.virtualization import MACHINES_TAKEN
from hcp.local.demo import volumes
from hcp.local.state.parts import API, IMAGES, NODE
from hcp.payload.published import OPERATOR
from hcp.payload.registry import default_registry

# The release first: its node disk is put together while the operator's parts are compiled.
RELEASE_COMPONENT = "release-1.36"
CONTROL_PLANE_PARTS = (RELEASE_COMPONENT, OPERATOR)
MACHINE_IMAGES = ("image-virt-", "image-cdi-")
ADD_ONS = "DNS, volumes, Routes"


@dataclass(frozen=True)
class Step:
    title: str
    command: Sequence[str]
    usable: str = ""
    """What a person can do from now on."""
    save: Path | None = None
    """The command's output is kept here instead of shown."""
    needs_build: bool = False
    """Wait for the background build before this step."""
    known: Sequence[str] = ()
    """A command that succeeds where an earlier run did this step already."""
    typical: float = 2.0
    """Seconds it takes on two cores when all its parts are there."""
    parts: Sequence[str] = ()
    """Components that are made first where they are missing."""
    beside: bool = False
    """It goes on beside the steps after it."""
    enough: str = ""
    """What it says beside others when the steps that need it can begin; without, they wait for its end."""
    needs_beside: bool = False
    """Wait for what goes on beside before this step."""


@dataclass(frozen=True)
class Tour:
    """How one tour is made."""

    name: str
    cluster: str
    nodes: int
    folder: Path
    build: bool = False
    fetches: bool = False
    """Official builds are fetched where there are any; what nobody publishes is the longest work then."""
    exists: bool = False
    """The embedded cluster is there from an earlier run, perhaps with KubeVirt on it already."""
    volumes: bool = False
    """The parts of volumes are there, so that they cost no time."""

    @property
    def management(self) -> Path:
        return self.folder / "management.kubeconfig"

    @property
    def guest(self) -> Path:
        return self.folder / f"{self.cluster}.kubeconfig"

    @property
    def pull_secret(self) -> Path:
        return self.folder / "pull-secret.json"


def background(tour: Tour) -> list[list[str]]:
    """Built while a person already uses the first steps; each of the commands by itself."""
    # What is fetched for the first step has the whole link: beside all images of KubeVirt it came three times later.
    later = ["--first", "kubernetes-1.36"] if tour.fetches else []
    builds = [["payload", "build", *machine_parts(), *later, *_source(tour)]] if tour.nodes else []
    return [*builds, ["payload", "build", *unpublished_parts()]] if tour.fetches else builds


def urgent(tour: Tour) -> list[list[str]]:
    """What the first hosted cluster waits for longest, made beside the first steps as fast as these."""
    if not tour.fetches:
        return []
    return [["payload", "build", RELEASE_COMPONENT, "--first", "kubernetes-1.36"]]


def unpublished_parts() -> list[str]:
    """What nobody publishes and needs nothing else first: it need not wait for what is fetched.

    Compilers come first, and then what the management cluster waits for.
    """
    registry = default_registry()
    alone = [part for part in registry.order(CONTROL_PLANE_PARTS) if not part.downloads and not part.deps]
    soon = {part.name for part in registry.order(["image-router"])}
    return [part.name for part in sorted(alone, key=lambda part: (not part.compiles, part.name not in soon))]


def machine_parts() -> list[str]:
    """What virtual machines need on the management cluster."""
    images = [name for name in default_registry().names() if name.startswith(MACHINE_IMAGES)]
    return ["manifest-kubevirt", "manifest-cdi", *images]


def steps(tour: Tour) -> list[Step]:
    """All of the tour, in order."""
    if not tour.nodes:
        return control_plane(tour)
    if not tour.fetches:
        return [*control_plane(tour), *machines(tour)]
    cluster, kubeconfig, *rest = control_plane(tour)
    kubevirt, scale, *nodes = machines(tour)
    # As soon as pods can start, KubeVirt does, and the add-ons beside it; what comes next only needs to find both.
    node = replace(cluster, command=[*cluster.command, "--until", "node"], typical=10, parts=(*API, *NODE))
    beside = replace(kubevirt, title=f"{ADD_ONS}, {kubevirt.title}", beside=True, needs_build=False)
    beside = replace(beside, parts=(*IMAGES, *kubevirt.parts), enough=MACHINES_TAKEN)
    return [node, kubeconfig, beside, *rest, replace(scale, needs_beside=True), *nodes]


def control_plane(tour: Tour) -> list[Step]:
    kubeconfig = ("--kubeconfig", str(tour.management))
    # The release without volumes stays the one that is taken when none is named.
    images = (*CONTROL_PLANE_PARTS, volumes.RELEASE) if tour.volumes else CONTROL_PLANE_PARTS
    release = ("--release-image", volumes.image()) if tour.volumes else ()
    return [
        Step(
            "A management cluster",
            ["local", "up", "--name", tour.name, *_first_profile(tour), *_source(tour)],
            f"kubectl --kubeconfig {tour.management} get pods -A",
            typical=20,
            parts=(*API, *NODE, *IMAGES),
        ),
        Step("Its kubeconfig", ["local", "kubeconfig", "--name", tour.name], save=tour.management),
        *_operator(tour, kubeconfig, images),
        Step(
            "A hosted cluster",
            [
                *("create", "cluster", "kubevirt", *kubeconfig, "--name", tour.cluster, "--node-pool-replicas", "0"),
                *("--pull-secret", str(tour.pull_secret), "--memory", "2Gi", "--cores", "1"),
                *("--control-plane-availability-policy", "SingleReplica", "--root-volume-size", "16", *release),
            ],
            # The pool is written last: with it the whole step was done, and its nodes are not taken away again.
            known=["get", "nodepools", tour.cluster, "--cluster-name", tour.cluster, *kubeconfig],
        ),
        Step(
            "Its control plane answers", ["wait", "cluster", tour.cluster, *kubeconfig, "--control-plane"], typical=15
        ),
        Step(
            "Its kubeconfig",
            ["create", "kubeconfig", "--name", tour.cluster, *kubeconfig],
            f"kubectl --kubeconfig {tour.guest} get namespaces",
            save=tour.guest,
        ),
    ]


def _operator(tour: Tour, kubeconfig: Sequence[str], images: Sequence[str]) -> list[Step]:
    install = Step("The operator", ["install", *kubeconfig, "--wait-until-available"], typical=20)
    if not tour.fetches:
        return [_push(tour, "The operator's image and a release in its registry", images), install]
    # Its image is there long before the disk of nodes that the release names: it starts while that is made.
    releases = [name for name in images if name != OPERATOR]
    default = ["--default-release-image", volumes.image(RELEASE_COMPONENT)]
    return [
        _push(tour, "The operator's image in its registry", [OPERATOR]),
        replace(install, command=[*install.command, *default]),
        _push(tour, "A release in its registry", releases),
    ]


def _push(tour: Tour, title: str, images: Sequence[str]) -> Step:
    return Step(title, ["local", "push", "--name", tour.name, *images, *_source(tour)], typical=20, parts=images)


def machines(tour: Tour) -> list[Step]:
    kubeconfig = ("--kubeconfig", str(tour.management))
    return [
        Step(
            "KubeVirt and CDI on the management cluster",
            ["local", "up", "--name", tour.name, "--profile", "kubevirt", *_source(tour)],
            needs_build=True,
            typical=140,
            parts=machine_parts(),
        ),
        Step(
            f"{tour.nodes} virtual machines as nodes",
            ["scale", "nodepool", tour.cluster, "--replicas", str(tour.nodes), *kubeconfig],
        ),
        Step(
            "The nodes are ready",
            ["wait", "nodepool", tour.cluster, *kubeconfig, "--timeout", "30m"],
            f"kubectl --kubeconfig {tour.guest} get nodes",
            typical=90,
        ),
    ]


def _first_profile(tour: Tour) -> list[str]:
    """A cluster that exists keeps what it has; a new one begins without KubeVirt, whose parts are still built."""
    return [] if tour.exists else ["--profile", "cluster"]


def _source(tour: Tour) -> list[str]:
    return ["--build"] if tour.build else []
