"""`rotate kubeconfig`: take an administrator's kubeconfig away and make a new one."""

from __future__ import annotations

from hcp.cli.engine.command import Arg, Command, Flag
from hcp.cli.engine.common import CLUSTER_ACCESS, NAMESPACE, TIMEOUT

COMMAND = Command(
    "rotate kubeconfig",
    "Revoke the administrator's kubeconfig of a hosted cluster and make a new one",
    long="The signer of that kubeconfig is replaced without any overlap: every copy of the old one is refused as soon "
    "as kube-apiserver has been rolled, and open connections end with it. Nothing else uses this signer. Waits until "
    "it is done, unless --no-wait is given.",
    examples=(
        ("Revoke, then fetch the new one", "{prog} rotate kubeconfig demo && {prog} create kubeconfig --name demo"),
    ),
    args=(Arg("NAME", "hosted cluster"),),
    flags=(
        Flag("no-wait", "bool", False, "do not wait until the old one is refused"),
        TIMEOUT,
        NAMESPACE,
        *CLUSTER_ACCESS,
    ),
    handler="hcp.cli.rotate.run:kubeconfig",
)
