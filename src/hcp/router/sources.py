"""Where Routes come from: Routes themselves, Ingresses and Gateways, with what they need of Services and Secrets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hcp.api.paths import at
from hcp.kube import Client
from hcp.kube import resources as r
from hcp.router import ingresses, terminating
from hcp.router.admission import key_of
from hcp.router.changes import Changes, service_of
from hcp.router.gateway import translate
from hcp.router.gateway.follow import Gateways
from hcp.router.keys import LONGEST
from hcp.runtime import Informer

Object = dict[str, Any]


class Sources:
    """What a router follows in its cluster."""

    def __init__(self, client: Client, changes: Changes, *, ends_tls: bool, ingress_class: str) -> None:
        self._client = client
        self._ends_tls = ends_tls
        self._class = ingress_class
        self._changes = changes
        self.routes = Informer(client, r.ROUTES)
        self._services = Informer(client, r.SERVICES)
        self._slices = Informer(client, r.ENDPOINTSLICES)
        self._ingress = Informer(client, r.INGRESS_CONFIGS)
        self._slices.add_index("service", lambda one: filter(None, (service_of(one),)))
        self.routes.add_listener(changes.listener("routes"))
        self._services.add_listener(changes.listener("services"))
        # What Gateways mean depends on which Services and Secrets there are.
        self._services.add_listener(changes.heard_gateways)
        self._slices.add_listener(changes.listener("services", service_of))
        self._ingress.add_listener(changes.heard)
        self._informers = [self.routes, self._services, self._slices, self._ingress]
        # Only where it ends TLS; of Secrets no others than certificates are asked for.
        self._secrets = Informer(client, r.SECRETS, fields="type=kubernetes.io/tls")
        if ends_tls:
            self.routes.add_index("secret", terminating.external_of)
            self._secrets.add_listener(changes.listener("secrets"))
            self._secrets.add_listener(changes.heard_gateways)
            self._informers.append(self._secrets)
        self.ingresses = Informer(client, r.INGRESSES)
        self._classes = Informer(client, r.INGRESSCLASSES)
        if ingress_class:
            self.ingresses.add_index("secret", _secrets_of)
            self.ingresses.add_listener(changes.listener("ingresses"))
            self._classes.add_listener(changes.heard)
            self._informers += [self.ingresses, self._classes]
        self.gateways = Gateways(client, changes.heard_gateways) if ends_tls and ingress_class else None
        # What was made of each Ingress, and of all Gateways.
        self._of_ingress: dict[str, set[str]] = {}
        self._of_gateways: dict[str, Object] = {}

    async def start(self) -> None:
        """Follow all, and wait until everything that is there is known: a host that was made up stays."""
        followed = [one for one in self._informers if one is not self._ingress]
        if await self._client.has(r.INGRESS_CONFIGS):
            followed.append(self._ingress)
        for informer in self._informers:
            await informer.start()
        for informer in followed:
            await informer.wait_synced()
        if self.gateways is not None:
            await self.gateways.start()

    async def stop(self) -> None:
        for informer in self._informers:
            await informer.stop()
        if self.gateways is not None:
            await self.gateways.stop()

    @property
    def domain(self) -> str:
        """What the cluster's ingress configuration says."""
        return str(at(self._ingress.get("cluster") or {}, "spec.domain") or "")

    @property
    def apps_domain(self) -> str:
        """Below which new Routes get their hosts instead; those that have one keep it."""
        return str(at(self._ingress.get("cluster") or {}, "spec.appsDomain") or "")

    @property
    def any_host(self) -> frozenset[str]:
        """Administrators say it of a class of Ingresses, or of Gateways."""
        ingress = bool(self._class) and ingresses.may_answer_for_any(self._classes.get(self._class))
        gateway = self.gateways is not None and self.gateways.any_host()
        return frozenset(([ingresses.KIND] if ingress else []) + ([translate.KIND] if gateway else []))

    def pair(self, namespace: str, name: str) -> tuple[str, str] | None:
        return terminating.pair_of(self._secrets.get(name, namespace))

    def certificate(self, named: str) -> tuple[str, str] | None:
        """The default one, named as namespace/name."""
        return self.pair(*named.split("/", 1))

    def any_certificate(self) -> str:
        """What a Gateway shows in its place for names that nobody has; empty where none may."""
        pair = self.gateways.any_certificate() if self.gateways is not None else None
        return "\n".join(pair) if pair is not None and sum(map(len, pair)) < LONGEST else ""

    def service(self, namespace: str, name: str) -> Object | None:
        return self._services.get(name, namespace)

    def slices(self, namespace: str, name: str) -> Iterable[Object]:
        return self._slices.by_index("service", f"{namespace}/{name}")

    def own_ingress(self, key: str) -> Object | None:
        found = self.ingresses.get_key(key) if self._class else None
        return found if found is not None and ingresses.is_ours(found, self._class) else None

    def of_ingress(self, key: str) -> Iterable[str]:
        """Keys of the Routes that were made of an Ingress."""
        return self._of_ingress.get(key, ())

    def changed(self, changes: Changes) -> dict[str, Object | None]:
        """Routes by key that may be other than before; None for those that are gone."""
        for secret in changes.secrets:
            changes.routes.update(key_of(one) for one in self.routes.by_index("secret", secret))
            if self._class:
                changes.ingresses.update(key_of(one) for one in self.ingresses.by_index("secret", secret))
        found: dict[str, Object | None] = {key: self._route(key) for key in changes.routes}
        for key in changes.ingresses:
            found |= self._routes_of_ingress(key)
        if changes.gateways:
            found |= self._routes_of_gateways()
        return found

    def _route(self, key: str) -> Object | None:
        live = self.routes.get_key(key)
        return terminating.with_external(live, self.pair) if live is not None and self._ends_tls else live

    def _routes_of_ingress(self, key: str) -> dict[str, Object | None]:
        live = self.own_ingress(key)
        made = {key_of(one): one for one in ingresses.routes_of(live, self.pair)} if live is not None else {}
        found: dict[str, Object | None] = {**dict.fromkeys(self._of_ingress.pop(key, ())), **made}
        if made:
            self._of_ingress[key] = set(made)
        return found

    def _routes_of_gateways(self) -> dict[str, Object | None]:
        if self.gateways is None:
            return {}
        before, made = self._of_gateways, self.gateways.routes(self.pair, self.service)
        self._of_gateways = made
        return {key: made.get(key) for key in before.keys() | made.keys() if made.get(key) != before.get(key)}


def _secrets_of(ingress: Object) -> list[str]:
    return [f"{namespace}/{name}" for namespace, name in ingresses.secrets_of([ingress])]
