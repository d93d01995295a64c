"""What is known of the inside of a hosted cluster."""

from __future__ import annotations

from dataclasses import dataclass

from hcp.api import conditions as c

Verdict = tuple[str, str, str]
NOT_LOOKED_AT: Verdict = ("Unknown", c.STATUS_UNKNOWN, "Known as soon as the hosted API answers")


@dataclass(frozen=True)
class Part:
    """A workload of ours inside the guest: whether any pod of it is available, all are, all of its newest template."""

    kind: str
    name: str
    some: bool = False
    every: bool = False
    newest: bool = False


@dataclass(frozen=True)
class GuestState:
    """What is true inside the hosted cluster."""

    reachable: bool = False
    problem: str = ""
    nodes: int = 0
    ready_nodes: int = 0
    # Parts that are not available yet, in words.
    waiting: tuple[str, ...] = ()
    # What is to run there, and the release it was applied from.
    parts: tuple[Part, ...] = ()
    version: str = ""
    # The node port behind which the default ingress ends TLS; 0 while there is none.
    ingress_port: int = 0
    # Whether the guest has the Secret that stands for the rights of kubeadmin; None: nobody looked.
    kubeadmin: bool | None = None
    # The oldest kubelet's version.
    kubelet: str = ""
    # Whether the API server reaches metrics-server: "" while its API is not announced, "True", or why not.
    metrics_api: str = ""
    # The programs that read catalogs of operators, where some do.
    olm: tuple[Part, ...] = ()
    data_plane: Verdict = NOT_LOOKED_AT
    control_plane: Verdict = NOT_LOOKED_AT
