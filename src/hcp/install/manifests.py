"""Everything an installation consists of, in the order it is applied: the same options give the same manifests."""

from __future__ import annotations

from hcp.api import generate, names
from hcp.api.manifests import Object
from hcp.install import autoscaling, base, capi, ignition, operator, policies, privileges, rights, storage
from hcp.install.options import Options
from hcp.router import manifests as router
from hcp.router.crd import route_crd

# Marks what `hcp install` put there, so that it never touches a router somebody else installed.
INSTALLED = names.ANNOTATION_INSTALL_VERSION


def crds(options: Options) -> list[Object]:
    """The definitions; that of Route only together with our router."""
    found = generate.crds()
    if options.router:
        found.append(_marked(route_crd(), options))
    return found


def router_objects(options: Options) -> list[Object]:
    found = router.objects(
        options.image,
        domain=options.router_domain,
        replicas=options.replicas,
        pull_policy=options.pull_policy,
        foreign_wildcards=options.router_foreign_wildcards,
    )
    return [_marked(one, options) for one in found]


def resources(options: Options, *, monitors: bool = False) -> list[Object]:
    """All objects besides the definitions."""
    return [
        *base.priority_classes(),
        base.namespace(options),
        *base.given_files(options),
        *rights.objects(options),
        *capi.objects(options),
        *storage.objects(),
        *autoscaling.objects(),
        *privileges.objects(options),
        *policies.objects(options),
        base.supported_versions(options),
        *(router_objects(options) if options.router else []),
        operator.deployment(options),
        operator.service(options),
        *ignition.objects(options),
        *([operator.monitor(options)] if monitors else []),
    ]


def _marked(obj: Object, options: Options) -> Object:
    metadata = obj["metadata"]
    annotations = {**metadata.get("annotations", {}), INSTALLED: options.version}
    return {**obj, "metadata": {**metadata, "annotations": annotations}}
