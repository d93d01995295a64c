"""The sessions of all hosted clusters, and who wants to know when one begins."""

from __future__ import annotations

from collections.abc import Callable

from hcp.kubevirt.session import Session
from hcp.runtime import Controller
from hcp.runtime.controller import Reconcile


class Sessions:
    """By hosted namespace."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}
        # By the namespace of the infra cluster where the machines run, then as above.
        self._beside: dict[str, dict[str, Session]] = {}
        self._told: list[Callable[[Session], None]] = []

    def on_begin(self, tell: Callable[[Session], None]) -> None:
        """Call `tell` with each session before it begins to follow anything."""
        self._told.append(tell)

    def get(self, hosted: str) -> Session | None:
        return self._sessions.get(hosted)

    def all(self) -> list[Session]:
        return list(self._sessions.values())

    def with_machines_in(self, namespace: str) -> list[Session]:
        """Whose machines may run in this namespace of an infra cluster: asked for with every change of a machine."""
        return list(self._beside.get(namespace, {}).values())

    def begin(self, session: Session) -> None:
        self.end(session.hosted_namespace)
        self._sessions[session.hosted_namespace] = session
        self._beside.setdefault(session.infra.namespace, {})[session.hosted_namespace] = session
        for tell in self._told:
            tell(session)

    def end(self, hosted: str) -> None:
        session = self._sessions.pop(hosted, None)
        if session is not None:
            there = self._beside[session.infra.namespace]
            del there[hosted]
            if not there:
                del self._beside[session.infra.namespace]

    def controller(self, name: str, reconcile: Reconcile) -> Controller:
        """For keys below hosted namespaces.

        They wait for guests and infra clusters: one that hangs takes few of the workers, and none from other teams.
        """
        return Controller(name, reconcile, workers=16, group=self._team, per_group=4)

    def _team(self, key: str) -> str:
        """Whose a key below a hosted namespace is: the namespace of its HostedCluster."""
        hosted = key.partition("/")[0]
        session = self._sessions.get(hosted)
        return str(session.cluster["metadata"]["namespace"]) if session is not None else hosted
