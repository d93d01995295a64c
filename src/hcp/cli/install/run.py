"""`install` and `install render`: from flags to options, and then to a cluster or to stdout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hcp.api.names import SUPPORTED_KUBERNETES
from hcp.cli.engine import files
from hcp.cli.engine.command import Call, UsageError
from hcp.cli.engine.terminal import note, warn
from hcp.install.options import DEFAULT_IMAGE, Options, usual_pull_policy

if TYPE_CHECKING:
    from hcp.install.apply import Written
    from hcp.kube import Client

RELEASE = "release-1.36"
_WILDCARDS = "router-allow-hosts-under-foreign-wildcards"


def _built(component: str) -> str:
    """The reference by digest of an image that was built on this machine, else the empty string."""
    from hcp import payload
    from hcp.errors import HcpError
    from hcp.payload.image import image_digest, reference

    try:
        found = payload.find(component)
    except HcpError:
        return ""
    if found is None or not (found / "image").is_dir():
        return ""
    repository = "hcp/release" if component.startswith("release-") else f"hcp/{component.removeprefix('image-')}"
    return reference(repository, image_digest(found))


def _given_image(call: Call) -> str:
    return call.text("image") or call.text("hypershift-image")


async def _known_image(client: Client, call: Call, *, embedded: bool) -> str:
    """What stands in for --image: the one that is installed, or a newer build of it where builds are served."""
    from hcp.errors import HcpError
    from hcp.install import apply

    found = await apply.current_image(client, call.text("namespace"))
    if embedded:
        found = _newer(found, "image-hcp")
    if found == DEFAULT_IMAGE and not embedded:
        found = ""  # Written down by --development, which starts no pods.
    needed = not call.switch("development") and call.text("install-scope") != "crds"
    if found or embedded or _given_image(call) or not needed:
        return found
    raise HcpError(
        "which image should the operator run?",
        cause="no public registry has one, and only embedded clusters serve what was built here",
        hint=f"{call.prog} release push docker://registry.example.com/team/hcp puts one into a registry that this "
        "cluster can pull from, with releases, and prints what to use here (--image …)",
    )


def options_of(
    call: Call,
    *,
    router: bool,
    image: str = "",
    known: Written | None = None,
    domain: str = "",
    foreign_wildcards: bool = False,
    privileges: tuple[str, ...] = (),
    policies: bool = True,
    declared: Mapping[str, tuple[str, ...]] | None = None,
    named_route_port: int = 0,
) -> Options:
    """The options of a command line; the other arguments stand in for flags that were not given."""
    if call.switch("development") and call.changed("replicas"):
        raise UsageError("--development means no operator pods, so --replicas cannot be given with it")
    if call.number("replicas") < 0:
        raise UsageError(f"--replicas {call.number('replicas')} is not possible", hint="it is 0 or more")
    if call.changed("limit-crd-install") and "kubevirt" not in call.items("limit-crd-install"):
        raise UsageError("--limit-crd-install leaves kubevirt out", hint="it is the platform hcp runs: add kubevirt")
    image = _given_image(call) or image or DEFAULT_IMAGE
    return Options(
        namespace=call.text("namespace"),
        image=image,
        pull_policy=call.text("image-pull-policy") if call.changed("image-pull-policy") else usual_pull_policy(image),
        replicas=0 if call.switch("development") else call.number("replicas"),
        shards=_shards(call, declared),
        default_release=call.text("default-release-image") or (known.default_release if known else ""),
        supported_versions=tuple(call.items("supported-versions"))
        or (known.supported_versions if known else ())
        or SUPPORTED_KUBERNETES,
        pull_secret=_pull_secret(call, known),
        trust_bundle=_trust_bundle(call, known),
        environment=call.pairs("additional-operator-env-vars"),
        monitoring=call.text("platform-monitoring"),
        admin_rbac=call.switch("enable-admin-rbac-generation"),
        router=router,
        router_domain=call.text("router-domain") or domain,
        allowed_privileges=tuple(call.items("allow-privileges")) if call.changed("allow-privileges") else privileges,
        policies=policies,
        internal_registries=_items(call, "internal-registries", declared),
        insecure_registries=_items(call, "insecure-registries", declared),
        registry_overrides=_items(call, "registry-overrides", declared),
        hosted_quota=call.pairs("hosted-quota")
        if call.changed("hosted-quota")
        else dict(one.partition("=")[::2] for one in (declared or {}).get("--hosted-quota", ())),
        named_route_port=named_route_port,
        router_foreign_wildcards=call.switch(_WILDCARDS) if call.changed(_WILDCARDS) else foreign_wildcards,
    )


def _pull_secret(call: Call, known: Written | None) -> bytes | None:
    """The file that was given, else what a former run was given; an empty name takes it back."""
    if call.changed("pull-secret"):
        return files.pull_secret(call.text("pull-secret")) if call.text("pull-secret") else None
    return known.pull_secret if known else None


def _trust_bundle(call: Call, known: Written | None) -> str:
    if call.changed("additional-trust-bundle"):
        path = call.text("additional-trust-bundle")
        return files.trust_bundle(path) if path else ""
    return known.trust_bundle if known else ""


def _items(call: Call, flag: str, known: Mapping[str, tuple[str, ...]] | None) -> tuple[str, ...]:
    """A list that was given, else the one of a former run; an empty one takes it back."""
    return tuple(filter(None, call.items(flag))) if call.changed(flag) else (known or {}).get(f"--{flag}", ())


def _shards(call: Call, known: Mapping[str, tuple[str, ...]] | None) -> int:
    """The number that was given, else that of a former run: another one has to be asked for."""
    if call.changed("shards"):
        return call.number("shards")
    said = (known or {}).get("--shards", ())
    return int(said[0]) if said and said[0].isdigit() else 1


def _newer(known: str, component: str) -> str:
    """On an embedded cluster what was built here replaces an earlier build, never an image that the user chose."""
    from hcp.payload.image import REGISTRY

    return known if known and not known.startswith(f"{REGISTRY}/") else _built(component) or known


async def install(call: Call) -> int | None:
    from dataclasses import replace

    from hcp.cli.shared.cluster import connect
    from hcp.install import apply, manifests
    from hcp.kube import resources as r

    scope = call.text("install-scope")
    if scope == "crds" and call.switch("wait-until-available"):
        raise UsageError("--wait-until-available has nothing to wait for with --install-scope crds")
    options_of(call, router=False)  # Everything that is wrong with the command line is said before anything is asked.
    async with connect(call) as client:
        router = await apply.wants_router(client, forced=call.switch("router"))
        embedded = await apply.has_embedded_registry(client)
        known = await apply.written(client, call.text("namespace"))
        if embedded:
            known = replace(known, default_release=_newer(known.default_release, RELEASE))
        options = options_of(
            call,
            router=router,
            image=await _known_image(client, call, embedded=embedded),
            known=known,
            domain=await apply.current_router_domain(client) if router else "",
            privileges=await apply.current_privileges(client),
            policies=await apply.can_guard(client, needed=not call.switch("without-privilege-policies")),
            declared=await apply.current_declarations(client, call.text("namespace")),
            foreign_wildcards=router and await apply.current_foreign_wildcards(client),
            named_route_port=await apply.named_route_port(client, ours=router),
        )
        if scope != "resources":
            wait = scope == "all" or call.switch("wait-until-crds-established")
            await apply.apply_crds(client, manifests.crds(options), print, wait=wait)
        if scope == "crds":
            return 0
        monitors = options.monitoring != "None" and await client.has(r.SERVICEMONITORS)
        await apply.apply_resources(client, manifests.resources(options, monitors=monitors), print)
        if router and not options.router_domain and not await client.has(r.INGRESS_CONFIGS):
            note(
                "The router knows no apps domain: Routes need a host each, or run install with --router-domain DOMAIN."
            )
        if options.shards > options.replicas > 0:
            few = "One operator pod works" if options.replicas == 1 else f"{options.replicas} operator pods work"
            note(f"{few} on all {options.shards} shards: --replicas {options.shards} gives each a pod of its own.")
        if not options.default_release:
            note(
                "No default release is set: create cluster needs --release-image, or set --default-release-image here."
            )
        if call.switch("wait-until-available"):
            await apply.wait_available(client, options, call.seconds("timeout"), note)
            note("The operator is available.")
    return 0


def render(call: Call) -> int | None:
    from hcp.cli.engine.render import write
    from hcp.install import manifests
    from hcp.router.manifests import NAMED_SERVICE_PORT

    if call.switch("template") and not call.switch("render-sensitive"):
        raise UsageError("--template needs --render-sensitive", hint="a template holds the Secrets as they are")
    router = call.switch("router")
    options = options_of(call, router=router, named_route_port=NAMED_SERVICE_PORT if router else 0)
    which = call.text("outputs")
    if not _given_image(call) and which != "crds":
        warn(f"only embedded clusters serve {DEFAULT_IMAGE}: name an image your cluster can pull with --image")
    objects: list[dict[str, Any]] = []
    if which in ("all", "crds"):
        objects += manifests.crds(options)
    if which in ("all", "resources"):
        objects += manifests.resources(options, monitors=options.monitoring != "None")
    secrets = any(obj["kind"] == "Secret" for obj in objects)
    if not call.switch("render-sensitive"):
        objects = [obj for obj in objects if obj["kind"] != "Secret"]
        if secrets:
            note("Secrets are left out; --render-sensitive prints them.")
    if call.switch("template"):
        objects = [_template(objects, options)]
    write(_text(objects, call.text("format")), call.text("output-file"), sensitive=call.switch("render-sensitive"))
    return 0


def _text(objects: list[dict[str, Any]], form: str) -> str:
    if form == "json":
        import json

        return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}, indent=2, sort_keys=True) + "\n"
    from hcp.cli.engine.render import documents

    return documents(objects)


def _template(objects: list[dict[str, Any]], options: Options) -> dict[str, Any]:
    """An OpenShift Template in which the image can be chosen."""
    import json

    text = json.dumps(objects).replace(json.dumps(options.image), '"${OPERATOR_IMAGE}"')
    return {
        "apiVersion": "template.openshift.io/v1",
        "kind": "Template",
        "metadata": {"name": "hypershift-operator-template"},
        "objects": json.loads(text),
        "parameters": [{"name": "OPERATOR_IMAGE", "value": options.image}],
    }
