"""The step of `up` that lets the cluster have mirror sets (`--with mirrors`), as OpenShift defines them.

What follows them is a process of the node: `hcp.local.node.mirrors`.
"""

from __future__ import annotations

from hcp.api.manifests import READ, Object, binding, cluster_binding, cluster_role, role, rule, user
from hcp.api.names import CONFIG_NAMESPACE
from hcp.kube import Client
from hcp.local.addons import waiting
from hcp.local.addons.applying import apply_all, digest_of
from hcp.local.addons.context import Context
from hcp.local.addons.disks_steps import definitions
from hcp.local.node.mirrors import PULL_SECRET

DEFINITIONS = "mirror-definitions"
USER = "hcp-local:mirrors"


async def bring_up(ctx: Context, client: Client) -> bool:
    """Says whether anything had to be done."""
    artifacts = await ctx.ensure([DEFINITIONS])
    wanted = [*definitions(artifacts[DEFINITIONS]), *rights()]
    digest = digest_of(wanted)
    if ctx.done("mirrors", digest) and await waiting.all_ready(client, ctx.spec, wanted):
        return False
    await apply_all(client, wanted)
    ctx.lap("mirror sets defined")
    ctx.remember("mirrors", digest)
    return True


def rights() -> list[Object]:
    """Mirror sets and the settings for images, and beside these the authorities and one login."""
    return [
        cluster_role(
            USER,
            [
                rule("config.openshift.io", "imagedigestmirrorsets imagetagmirrorsets images", READ),
                rule("operator.openshift.io", "imagecontentsourcepolicies", READ),
            ],
        ),
        cluster_binding(USER, user(USER)),
        role(
            USER,
            CONFIG_NAMESPACE,
            [rule("", "configmaps", READ), {**rule("", "secrets", READ), "resourceNames": [PULL_SECRET]}],
        ),
        binding(USER, CONFIG_NAMESPACE, user(USER)),
    ]
