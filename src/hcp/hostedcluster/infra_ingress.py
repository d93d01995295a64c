"""The default ingress below the domain of an external infra cluster: asked and made there beside the passes.

An infra cluster of somebody else may hang; a pass takes what is known. Nothing is watched there, so it is looked at
again at a slow pace, which writes nothing while nothing changed.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from hcp.api import names
from hcp.api.paths import at
from hcp.controlplane.params import Manifest, Params
from hcp.errors import HcpError
from hcp.hostedcluster.asking import Asking
from hcp.kubevirt.infra import InfraClients, credentials
from hcp.kubevirt.passthrough import AGAIN, SOON, Found, Wish, lead

FIELD = "platform.kubevirt.baseDomainPassthrough"
SECONDS = 60.0


class InfraIngress(Asking[Wish, Found]):
    """The answer: the domain there, and what is wrong with the way."""

    what = "ingress of the infra cluster"
    again = SOON

    def __init__(self, infras: InfraClients, ended: Callable[[str], None]) -> None:
        super().__init__(ended)
        self._infras = infras

    async def answer(self, cluster: dict[str, Any], question: Wish) -> tuple[Found, float]:
        meta = cluster["metadata"]
        hosted = names.control_plane_namespace(meta["namespace"], meta["name"])
        try:
            async with asyncio.timeout(SECONDS):
                infra = await self._infras.get(hosted, credentials(at(cluster, "spec.platform") or {}))
                found = await lead(infra, question)
        except TimeoutError:
            found = Found(problem="the infra cluster does not answer in time", todo="look at it there", again=AGAIN)
        except HcpError as error:
            todo = "hcp doctor --infra-kubeconfig-file says more"
            found = Found(problem=f"the infra cluster cannot be asked: {error}", todo=todo, again=AGAIN)
        return found, found.again

    def domain(self, key: str) -> str:
        """Below which the infra cluster of this hosted cluster publishes Routes; empty while nobody has said."""
        known = self._known.get(key)
        return known.answer.domain if known is not None and known.answer is not None else ""


def asked(spec: Mapping[str, Any]) -> bool:
    """Whether names below the domain of an external infra cluster are wanted."""
    kubevirt = at(spec, "platform.kubevirt") or {}
    return bool(kubevirt.get("baseDomainPassthrough") and kubevirt.get("credentials"))


def namespace(p: Params, spec: Mapping[str, Any]) -> str:
    """Where the machines are, in whichever cluster."""
    return str(at(spec, "platform.kubevirt.credentials.infraNamespace") or p.namespace)


def fingerprint(secret: Mapping[str, Any] | None) -> str:
    """Of the kubeconfig in the hosted namespace; empty while there is none."""
    text = str(at(secret, "data.kubeconfig") or "")
    return hashlib.sha256(text.encode()).hexdigest() if text else ""


def elsewhere(objects: list[Manifest], where: str, infra_id: str) -> tuple[Manifest, ...]:
    """Objects of the hosted namespace as they are made there: nobody of here can own them."""
    return tuple(
        {
            **one,
            "metadata": {
                "name": one["metadata"]["name"],
                "namespace": where,
                "labels": {names.LABEL_INFRA_ID: infra_id},
            },
        }
        for one in objects
    )
