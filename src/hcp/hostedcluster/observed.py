"""What a pass has seen, gathered for the one status patch at its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hcp.api import conditions as c
from hcp.api.pause import Pause
from hcp.controlplane.params import Endpoint
from hcp.controlplane.storage_plan import Plan
from hcp.etcd.membership import Record
from hcp.guest.migration import Told
from hcp.guest.state import GuestState
from hcp.hostedcluster.hibernation import Sleep
from hcp.hostedcluster.update_status import Updates


@dataclass(frozen=True)
class ReleaseState:
    """How reading the release went."""

    version: str = ""
    image: str = ""
    arch: str = ""
    # None while nothing has been tried; a reason and a sentence when it failed.
    reason: str = ""
    problem: str = ""
    missing: tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        return bool(self.version) and not self.problem and not self.missing


@dataclass(frozen=True)
class StorageState:
    """What is known of the guest's volumes, in a cluster that wants some."""

    # None: the release has no storage; `missing` says what it lacks.
    plan: Plan | None = None
    missing: tuple[str, ...] = ()
    nodes: int = 0
    controller: Mapping[str, Any] | None = None
    # Rights that the owner of an external infra cluster does not grant.
    lacking: tuple[str, ...] = ()
    # What is not available inside the guest; None: nobody has looked.
    waiting: tuple[str, ...] | None = ()


@dataclass(frozen=True)
class IngressState:
    """What is known of a base domain that somebody else has to lead here; nothing where the cluster has none."""

    # None: nobody has looked yet; "": names below it lead to the router; else why not.
    problem: str | None = ""
    # What the owner of the domain, or of an external infra cluster, has to do.
    todo: str = ""
    reason: str = c.CANARY_FAILS


@dataclass(frozen=True)
class LoginState:
    """What is known of how people log in; without anything set, they do not."""

    # Whether the cluster has an OAuth server of its own, or tokens of the owner's issuer are believed.
    server: bool = False
    direct: bool = False
    deployment: Mapping[str, Any] | None = None
    # What is wrong with identity providers, and what of them is followed in part.
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    # Why it cannot be started yet.
    waiting: str = ""
    callback: str = ""
    # The Secret with the password of kubeadmin, its hash, and whether the guest was given that.
    kubeadmin: str = ""
    kubeadmin_hash: str = ""
    given: bool = False


@dataclass(frozen=True)
class Names:
    """Hosts under which the owner publishes services of the control plane."""

    hosts: tuple[str, ...]
    # None: nobody has asked yet.
    unknown: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Observed:
    """The facts that `status.compute` turns into conditions."""

    pause: Pause = field(default_factory=Pause)
    sleep: Sleep = field(default_factory=Sleep)
    config_problems: Sequence[str] = ()
    config_reason: str = ""
    # Of what the owner gave for the API server; the cluster runs without it.
    certificate_problems: Sequence[str] = ()
    client_ca_problem: str = ""
    registry_ca_problem: str = ""
    # None: there is no proxy; else what is wrong with it.
    proxy: tuple[str, ...] | None = None
    # Host names of the owner's; None: none is given; else which are known, as far as they were asked for.
    external_names: Names | None = None
    unsupported: Sequence[str] = ()
    unacted: Sequence[str] = ()
    partly_acted: Sequence[str] = ()
    release: ReleaseState = field(default_factory=ReleaseState)
    api_endpoint: Endpoint | None = None
    waiting_for: Sequence[str] = ()
    etcd: Mapping[str, Any] | None = None
    etcd_problem: str = ""
    # None: not asked yet; "": takes writes; else why it does not.
    etcd_full: str | None = None
    # What was decided about its members; None: it has one and always had.
    etcd_record: Record | None = None
    # What is being done about them.
    etcd_change: str = ""
    # Why the snapshot that is asked for cannot be taken.
    restore_problem: str = ""
    # In an upgrade: how far etcd's members are, while the API servers wait for them.
    members_first: str = ""
    # Of an etcd that somebody else runs; None: not looked at; "": we can log in; else why not.
    foreign_etcd: str | None = None
    deployments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # Of parts that are short of pods: why, where that is known.
    troubles: Mapping[str, str] = field(default_factory=dict)
    wanted_deployments: tuple[str, ...] = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
    # None: not asked yet; "": answers; else what went wrong.
    api_health: str | None = None
    # How far the change of the encryption key is; "": not looked at in this pass.
    encryption: str = ""
    # The Secret of the key that is wanted, and the key's fingerprint.
    encryption_key: tuple[str, str] = ("", "")
    # Fingerprint of the key everything shall be stored under, and of the one it was last rewritten under.
    rewrite: str = ""
    rewritten: str = ""
    # How storing everything anew for a new minor goes; None: not asked for, or nothing known yet.
    stored: Told | None = None
    # None: not looked at, or nothing to tell.
    storage: StorageState | None = None
    ingress: IngressState = field(default_factory=IngressState)
    # None: not looked at; what the status says stays.
    login: LoginState | None = None
    credentials_problem: str | None = None
    credentials_reason: str = ""
    unspread: str = ""
    # How many other clusters are starting before this one may.
    ahead: int = 0
    ignition_endpoint: str = ""
    ignition_ready: bool | None = None
    # None: not looked at yet since this process started; what the status says stays.
    guest: GuestState | None = None
    own_network: bool = True
    not_migratable: tuple[str, ...] = ()
    # Whether there is another infra node where a machine could move; unknown counts as yes.
    elsewhere: bool = True
    errors: Mapping[str, str] = field(default_factory=dict)
    # Set once anybody has asked for other certificates.
    certificates: tuple[bool, str, str] | None = None
    # None: the cluster follows no channel, or nothing is known yet.
    updates: Updates | None = None
    kubeconfig: str = ""
    custom_kubeconfig: str = ""

    @property
    def etcd_voters(self) -> int:
        """How many members of etcd decide; 0: all that there should be."""
        return self.etcd_record.voters if self.etcd_record is not None else 0

    @property
    def invalid(self) -> tuple[str, ...]:
        """All that is wrong with the configuration, whether the cluster can be made or not."""
        further = (self.client_ca_problem, self.registry_ca_problem)
        return (*self.config_problems, *self.certificate_problems, *(one for one in further if one))

    @property
    def cannot_start(self) -> bool:
        """Whether it is its own spec, not the machine, that keeps it from starting."""
        return bool(self.config_problems or self.unsupported or self.release.problem)
