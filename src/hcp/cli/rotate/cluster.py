"""`rotate cluster`: new certificate authorities for a hosted cluster, while it runs."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Command, Flag
from hcp.cli.engine.common import CLUSTER_ACCESS, NAMESPACE, TIMEOUT, WAIT

HOUR = 3_600_000_000_000

COMMAND = Command(
    "rotate cluster",
    "Give a hosted cluster new certificate authorities while it runs",
    long="A new authority is first made known beside the old one, then signs every certificate, and when the overlap "
    "is over the old one is trusted by nobody. Who fetches the kubeconfig again in the overlap is never refused; no "
    "node is replaced, their kubelets restart once. Pods inside the cluster that read the API's CA only when they "
    "start have to be restarted by their owners before the overlap ends. Kubelets renew their client certificates by "
    "themselves: their signer (kubelets) stays trusted until the last one has. "
    "Condition CertificatesUpToDate tells how far it is.",
    examples=(
        ("Everything, with a day for people to fetch kubeconfigs", "{prog} rotate cluster demo --overlap 24h"),
        ("Only etcd's, and wait", "{prog} rotate cluster demo --ca etcd --wait"),
        ("How far it is", "{prog} rotate cluster demo --status"),
        ("Certificates that live 90 days from now on", "{prog} rotate cluster demo --validity 2160h"),
    ),
    args=(Arg("NAME", "hosted cluster"),),
    flags=(
        Flag("ca", "stringSlice", ("all",), "authorities: all, root, etcd, admin, kubelets, or a name of its Secret"),
        Flag("overlap", "duration", HOUR, "how long both are trusted before each step that people can feel"),
        Flag("validity", "duration", 0, "life of new certificates (default: a year); at least 24h"),
        Flag("authority-validity", "duration", 0, "life of the new authorities (default: ten years)"),
        Flag("status", "bool", False, "only tell how far it is"),
        WAIT,
        TIMEOUT,
        NAMESPACE,
        *CLUSTER_ACCESS,
    ),
    handler="hcp.cli.rotate.run:cluster",
)
