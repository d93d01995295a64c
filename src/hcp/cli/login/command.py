"""`login`: a kubeconfig of one's own for a hosted cluster."""

from __future__ import annotations

from hcp.cli.engine.command import Command, Flag
from hcp.cli.engine.common import CLUSTER_ACCESS, NAMESPACE

COMMAND = Command(
    "login",
    "Log in to a hosted cluster and write a kubeconfig",
    long="Asks the OAuth server of the hosted cluster and writes a kubeconfig whose tokens renew themselves: they live "
    "for a quarter of an hour, the login for a day unless the cluster says otherwise. With a name and a password for "
    "`kubeadmin` and users of HTPasswd providers, with --web by a browser for those of every provider. The password of "
    "kubeadmin is taken from its Secret if you may read it; others are asked for. Tokens are kept in a file of yours "
    "below ~/.kube/cache/hcp-login.\n"
    "Without access to the management cluster, say where both servers are: --server, --issuer and "
    "--certificate-authority. `kubectl` and `oc` work with the kubeconfig; `oc login --token` takes what "
    "`{prog} login token --output token` prints.",
    examples=(
        ("As the administrator of the cluster", "{prog} login --name demo"),
        ("As somebody else", "{prog} login --name demo -u alice"),
        ("By a browser", "{prog} login --name demo --web"),
        (
            "Without the management cluster",
            "{prog} login --server https://api.example.com:6443 --issuer https://oauth.example.com "
            "--certificate-authority ca.crt -u alice",
        ),
    ),
    flags=(
        Flag("name", "string", "", "hosted cluster"),
        Flag("username", "string", "kubeadmin", "who you are", short="u"),
        Flag("password", "string", "", "password; - reads it from stdin (default: asked for)", short="p"),
        Flag("web", "bool", False, "log in by a browser on this machine"),
        Flag("to", "string", "", "kubeconfig to write (default: NAME.kubeconfig here)", metavar="file"),
        Flag("server", "string", "", "API server, instead of asking the management cluster", metavar="url"),
        Flag("issuer", "string", "", "OAuth server, instead of asking the management cluster", metavar="url"),
        Flag(
            "certificate-authority",
            "string",
            "",
            "who signed for both servers (default: what the management cluster says)",
            metavar="file",
        ),
        NAMESPACE,
        *CLUSTER_ACCESS,
    ),
    exclusive=(("web", "password"), ("web", "username")),
    handler="hcp.cli.login.run:run",
)
