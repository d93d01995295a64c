"""What the storage driver of a hosted cluster may do; the operator binds it in hosted namespaces alone."""

from __future__ import annotations

from hcp.api import names
from hcp.api.manifests import Object, cluster_role, rule
from hcp.csi.kubevirt import rights


def hosted_rules() -> list[Object]:
    return [rule(one.group, " ".join(one.resources), one.verbs) for one in (*rights.ALL, *rights.CLAIMS)]


def objects() -> list[Object]:
    return [cluster_role(names.hosted_role(names.CSI_ACCOUNT), hosted_rules())]
