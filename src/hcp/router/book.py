"""Who has which host, kept as Routes come, change and go.

Whether a Route gets its host depends on those that ask for the same one, and on those that ask for the wildcard above
it: when one changes, these are decided anew, and nobody else. The rules themselves are in `admission`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hcp.router import claims
from hcp.router.admission import Decision, Policy, first_look, settle
from hcp.router.claims import Claim, Route, wildcard_of
from hcp.runtime.conditions import now


class Book:
    """All Routes, also those made of Ingresses and Gateways, with what became of them."""

    def __init__(self) -> None:
        self.routes: dict[str, Route] = {}
        self.decisions: dict[str, Decision] = {}
        # By the Route's uid: what was given, even while the API server cannot be told.
        self.granted: dict[str, Claim] = {}
        self.admitted = 0
        self._policy = Policy()
        self._looked: dict[str, Decision] = {}
        # The name that a Route asks for, and who asks for it. One that is wrong by itself asks for none and is alone.
        self._asks: dict[str, str] = {}
        self._by_name: dict[str, set[str]] = {}
        self._below: dict[str, set[str]] = {}
        # Names that have to be decided anew.
        self._stale: set[str] = set()

    def put(self, key: str, route: Route | None) -> None:
        """A Route as it is now; None when there is none any more."""
        before = self.routes.pop(key, None)
        if before is not None:
            self._forget(key)
            if route is None or claims.uid_of(route) != claims.uid_of(before):
                self.granted.pop(claims.uid_of(before), None)
        if route is not None:
            self.routes[key] = route
            self._look(key)

    def follow(self, policy: Policy) -> None:
        """What the router was told about giving out hosts; where it is new, everybody is looked at again."""
        if policy != self._policy:
            self._policy = policy
            for key in self.routes:
                self._forget(key)
                self._look(key)

    def again(self, key: str) -> None:
        """Something else about a Route is new: HAProxy refused it, or does so no longer."""
        if key in self._asks:
            self._stale.add(self._asks[key])

    def decide(self, refused: Mapping[str, str]) -> set[str]:
        """Decide what has to be; the answer: whose decision was made."""
        names = self._stale | {below for name in self._stale for below in self._below.get(name, ())}
        self._stale.clear()
        decided: set[str] = set()
        for name in names:
            asking = self._by_name.get(name, set())
            above = self._by_name.get(_above(name), set())
            looked = [(self.routes[key], self._looked[key]) for key in asking | above]
            for one in settle(looked, self._policy, self.granted, refused):
                if one.key in asking:
                    self._write(one)
                    decided.add(one.key)
        return decided

    def remember(self, keys: Iterable[str]) -> None:
        """What was given is given, from now on."""
        for key in keys:
            route, decision = self.routes.get(key), self.decisions.get(key)
            if route is None or decision is None:
                continue
            uid = claims.uid_of(route)
            if decision.admitted:
                self.granted[uid] = claims.held(route, decision.name, self.granted) or Claim(decision.name, now())
            else:
                self.granted.pop(uid, None)

    def _look(self, key: str) -> None:
        looked = self._looked[key] = first_look(self.routes[key], self._policy)
        name = self._asks[key] = looked.name if looked.admitted else key
        self._by_name.setdefault(name, set()).add(key)
        self._below.setdefault(_above(name), set()).add(name)
        self._stale.add(name)

    def _forget(self, key: str) -> None:
        name = self._asks.pop(key)
        self._stale.add(name)
        self._by_name[name].discard(key)
        if not self._by_name[name]:
            del self._by_name[name]
            self._below[_above(name)].discard(name)
            if not self._below[_above(name)]:
                del self._below[_above(name)]
        old = self.decisions.pop(key, None)
        self.admitted -= old is not None and old.admitted

    def _write(self, decision: Decision) -> None:
        old = self.decisions.get(decision.key)
        self.admitted += int(decision.admitted) - int(old is not None and old.admitted)
        self.decisions[decision.key] = decision


def _above(name: str) -> str:
    """The wildcard over a name; keys of Routes, which stand for those that ask for no name, have none."""
    return name if "/" in name else wildcard_of(name)
