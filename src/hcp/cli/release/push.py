"""`release push`: the operator and releases in a registry of the user's."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Call, Command, Flag, UsageError
from hcp.cli.release.flags import OUTPUT, REGISTRY_FLAGS
from hcp.cli.shared.payload_source import SOURCE_FLAGS, build_only

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hcp.oci.logins import Logins
    from hcp.oci.push import Pusher
    from hcp.publish.run import Published
    from hcp.publish.target import Target

COMMAND = Command(
    "release push",
    "Publish the operator and releases in a registry of your own",
    long="Sends the operator's image, releases and every image they name into a registry, and prints the install\n"
    "line for clusters that pull from there. What was not built yet is built first. References are rewritten:\n"
    "whoever uses what was published needs that registry and no other. Only what the registry lacks is sent, broken\n"
    "uploads are continued, and running it again is safe.",
    examples=(
        ("Everything for Kubernetes 1.36", "{prog} release push docker://registry.example.com/team/hcp"),
        ("Two versions, signed", "{prog} release push docker://quay.io/team --release 1.36,1.35 --sign-key key.pem"),
        ("A registry with its own CA", "{prog} release push docker://registry.lan:5000/hcp --ca ca.pem"),
    ),
    args=(Arg("TARGET", "docker://REGISTRY/PATH; each image gets a repository below it"),),
    flags=(
        Flag("release", "stringSlice", [], "Kubernetes minors to publish; 1.36-storage can do volumes, 1.36-olm "
             "operators, 1.36-ingress Routes, 1.36-autoscaling pools that follow the load, 1.36-full all of it, "
             "1.36-platform logins and monitoring "
             "(default: the newest that is not made on request only)", metavar="minor"),
        Flag("parallel", "int", 4, "how many uploads run at once"),
        Flag("sign-key", "string", "", "ECDSA P-256 key (PEM) that signs the operator's image and the releases as "
             "cosign does; $HCP_SIGN_PASSWORD is its password", metavar="file"),
        *REGISTRY_FLAGS,
        *SOURCE_FLAGS,
        OUTPUT,
    ),
    handler="hcp.cli.release.push:run",
)  # fmt: skip


async def run(call: Call) -> None:
    import os

    from hcp.cli.engine.files import read
    from hcp.cli.release.access import authorities
    from hcp.oci import Reference, logins, signature
    from hcp.publish.target import RELEASE, Target

    target = Target.parse(call.arg("TARGET"))
    components = _components(call)
    if not 1 <= call.number("parallel") <= 64:
        raise UsageError(f"--parallel {call.number('parallel')} is not possible", hint="it is between 1 and 64")
    key = None
    if call.text("sign-key"):
        password = os.environ.get("HCP_SIGN_PASSWORD", "").encode() or None
        key = signature.private_key(read("sign-key", call.text("sign-key")), password)
    authorities(call)
    login = logins.find(Reference(target.registry, target.repository(RELEASE)), call.text("authfile"))
    artifacts = await _ensure(components, build=build_only(call))
    published = await _push(call, target, artifacts, login)
    graph = await _graph(call, published, login)
    if key is not None:
        await _sign(call, published, login, key)
    pull_secret = "" if await _anybody_reads(call, published) else str(login.path or "")
    _show(call, published, pull_secret, graph)


def _components(call: Call) -> list[str]:
    from hcp.cli.release.access import minors
    from hcp.payload.published import OPERATOR

    known = minors()
    wanted = list(dict.fromkeys(call.items("release"))) or minors(usual=True)[:1]
    for minor in wanted:
        if minor not in known:
            raise UsageError(
                f'there is no release "{minor}"', cause=f"known: {', '.join(known)}", hint="name a minor, such as 1.36"
            )
    return [OPERATOR, *(f"release-{minor}" for minor in wanted)]


async def _ensure(components: list[str], *, build: bool) -> dict[str, Path]:
    from hcp.payload import ensure_async
    from hcp.payload.published import with_parts

    return await ensure_async(with_parts(components), build=build)


async def _push(call: Call, target: Target, artifacts: dict[str, Path], login: Logins) -> Published:
    import tempfile
    from pathlib import Path

    from hcp.cli.shared.progress import Progress
    from hcp.payload.store import Store
    from hcp.publish.run import publish

    progress = Progress()
    sent = 0
    text = "asking the registry what it has"

    def told(count: int) -> None:
        nonlocal sent
        sent += count
        if progress.live:
            progress.show(f"{text}; {sent >> 20} MiB sent")

    def step(done: int, total: int, name: str) -> None:
        nonlocal text
        text = f"{done} of {total} images are in {target}"
        progress.show(f"{text}: {name}")

    store = Store()
    try:
        with store.lock("go-modules", shared=True):  # nobody cleans up meanwhile
            work = store.root / "work"
            work.mkdir(parents=True, exist_ok=True)
            # In the cache, where the layers of the operator's image can be linked instead of copied.
            with tempfile.TemporaryDirectory(dir=work, prefix="publish-") as folder:
                async with _pusher(call, target, login, told) as pusher:
                    published = await publish(target, artifacts, pusher, Path(folder), step)
                    progress.show(f"all images are in {target}; {pusher.sent_bytes >> 20} MiB were sent")
    finally:
        progress.close()
    return published


def _pusher(call: Call, target: Target, login: Logins, told: Callable[[int], None] = lambda _: None) -> Pusher:
    from hcp.cli.release.access import authorities
    from hcp.oci.push import Pusher

    return Pusher(
        f"{'http' if call.switch('insecure') else 'https'}://{target.registry}",
        ca_pem=authorities(call),
        auths=login.auths,
        uploads=call.number("parallel"),
        trust_env=True,
        told=told,
    )


async def _graph(call: Call, published: Published, login: Logins) -> str:
    """Last, so that whoever finds a release by it finds all of it."""
    import tempfile
    from pathlib import Path

    from hcp.cli.release.access import reader
    from hcp.oci import Reference
    from hcp.publish import graph

    if not published.releases:
        return ""
    ref = Reference(published.target.registry, published.target.repository(graph.NAME))
    with tempfile.TemporaryDirectory() as folder:
        async with _pusher(call, published.target, login) as pusher, reader(call, ref) as client:
            return await graph.push(pusher, client, published.target, published.releases, Path(folder))


async def _sign(call: Call, published: Published, login: Logins, key: object) -> None:
    from cryptography.hazmat.primitives.asymmetric import ec

    from hcp.cli.engine.terminal import note
    from hcp.cli.release.access import reader
    from hcp.oci import Reference
    from hcp.publish.signing import sign

    assert isinstance(key, ec.EllipticCurvePrivateKey)
    async with _pusher(call, published.target, login) as pusher:
        for image in (*published.releases.values(), published.operator):
            async with reader(call, Reference.parse(image)) as client:
                made = await sign(pusher, client, image, key)
            note(f"signed {image}" if made else f"signed before: {image}")


async def _anybody_reads(call: Call, published: Published) -> bool:
    """Whether clusters need a login to pull."""
    from hcp.cli.release.access import reader
    from hcp.oci import Reference
    from hcp.oci.errors import ImageUnauthorized

    ref = Reference.parse(published.operator)
    async with reader(call, ref, anonymous=True) as client:
        try:
            await client.manifest(ref)
        except ImageUnauthorized:
            return False
    return True


def _show(call: Call, published: Published, pull_secret: str, graph: str) -> None:
    import json
    import shlex

    from hcp.cli.engine.terminal import note
    from hcp.publish.line import install_words

    words = install_words(published, ca=call.text("ca"), insecure=call.switch("insecure"), pull_secret=pull_secret)
    if call.text("output") == "json":
        images = {"operator": published.operator, "releases": published.releases, "graph": graph}
        found = {**images, "install": [call.prog, *words]}
        print(json.dumps(found, indent=2))
        return
    for version, image in published.releases.items():
        note(f"Kubernetes {version}: {image}")
    if graph:
        note(f"The update graph: {graph}")
    if pull_secret:
        note(f"Clusters need a login to pull: {pull_secret} has yours; an account that may only read is better.")
    note("Install with:")
    print(shlex.join([call.prog, *words]))
