"""What logging in means inside a guest."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GuestLogin:
    """`kubeadmin`: the hash of its password, empty where there is no such user; `given`: the guest once had it."""

    kubeadmin: str = ""
    given: bool = False
