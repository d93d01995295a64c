"""The engine of the operator: caches that follow the API server, work queues, controllers, leadership, metrics."""

from hcp.runtime.apply import apply_if_changed
from hcp.runtime.conditions import get_condition, is_true, set_condition
from hcp.runtime.controller import Controller, Result
from hcp.runtime.events import EventRecorder
from hcp.runtime.health import serve_health
from hcp.runtime.informer import Informer, name_and_namespace, owner_key
from hcp.runtime.lease import Lease, LeaseLost
from hcp.runtime.logs import setup_logging
from hcp.runtime.phases import Facts, Failed, Phase, Phases, PhasesFailed, Report, Waiting
from hcp.runtime.store import key_of

__all__ = [
    "Controller",
    "EventRecorder",
    "Facts",
    "Failed",
    "Informer",
    "Lease",
    "LeaseLost",
    "Phase",
    "Phases",
    "PhasesFailed",
    "Report",
    "Result",
    "Waiting",
    "apply_if_changed",
    "get_condition",
    "is_true",
    "key_of",
    "name_and_namespace",
    "owner_key",
    "serve_health",
    "set_condition",
    "setup_logging",
]
