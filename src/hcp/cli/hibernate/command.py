"""`hibernate`: put a hosted cluster to sleep, now or by a schedule."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Command, Flag
from hcp.cli.engine.common import CLUSTER_ACCESS, NAMESPACE, TIMEOUT, WAIT

COMMAND = Command(
    "hibernate",
    "Put a hosted cluster to sleep, now or by a schedule",
    long="Its machines are shut down in good order, then its control plane ends: no pod of it runs, nothing is "
    "written. What it stores, the disks of its machines, its addresses, certificates and nodes stay as they are, and "
    "it wakes with them. With a schedule it sleeps and wakes by itself; what was asked by hand meanwhile holds until "
    "the schedule's next date. Condition Hibernating tells how far it is.\n"
    "With --wake-on-request the first connection to its API wakes it, whoever makes it: an old kubeconfig of somebody "
    "else does, too. Connections wait up to two minutes for the API server; kubectl gives up after ten seconds and has "
    "to be run again. The API must be published by Route, on a management cluster with hcp's router. It holds for "
    "every sleep, until --wake-on-request=false.",
    examples=(
        ("Now, until somebody wakes it", "{prog} hibernate demo --wait"),
        (
            "Every night and at weekends",
            "{prog} hibernate demo --schedule '0 19 * * 1-5' --wake-schedule '0 7 * * 1-5' --time-zone Europe/Berlin",
        ),
        (
            "At night, unless somebody needs it",
            "{prog} hibernate demo --schedule '0 19 * * *' --wake-schedule '0 7 * * *' --wake-on-request",
        ),
        ("No longer by a schedule", "{prog} hibernate demo --no-schedule"),
    ),
    args=(Arg("NAME", "hosted cluster", optional=True),),
    flags=(
        Flag("name", "string", "", "hosted cluster, instead of NAME", metavar="name"),
        Flag("schedule", "string", "", "when it falls asleep, as five fields of cron", metavar="when"),
        Flag("wake-schedule", "string", "", "when it wakes, as five fields of cron", metavar="when"),
        Flag("time-zone", "string", "UTC", "whose clock the schedules mean, like Europe/Berlin", metavar="zone"),
        Flag(
            "wake-on-request", "bool", False, "let the first request to its API wake it, in this and every later sleep"
        ),
        Flag("no-schedule", "bool", False, "end the schedule; the cluster wakes, or stays awake"),
        WAIT,
        TIMEOUT,
        NAMESPACE,
        *CLUSTER_ACCESS,
    ),
    exclusive=(("schedule", "no-schedule"), ("wake-schedule", "no-schedule"), ("time-zone", "no-schedule")),
    handler="hcp.cli.hibernate.run:hibernate",
)
