"""`login token`: what kubectl runs to get a token; renews it when it is about to end."""

from __future__ import annotations

from hcp.cli.engine.command import Call, Command, Flag

COMMAND = Command(
    "login token",
    "Print a token of a login, renewed if need be",
    long="Run by kubectl and oc, as kubeconfigs of `{prog} login` say. With --output token only the token is printed, "
    "for programs that take nothing else.",
    examples=(("For oc", "oc login --server URL --token $({prog} login token --session FILE --output token)"),),
    flags=(
        Flag("session", "string", "", "file of the login; its kubeconfig names it", required=True, metavar="file"),
        Flag(
            "output",
            "string",
            "credential",
            "an ExecCredential, or the token alone",
            short="o",
            choices=("credential", "token"),
            group="General",
        ),
    ),
    handler="hcp.cli.login.token:run",
)


def run(call: Call) -> int:
    import json

    from hcp.cli.login import session

    held = session.renewed(call.text("session"), call.prog)
    if call.text("output") == "token":
        print(held.id_token)
        return 0
    status = {"token": held.id_token, "expirationTimestamp": held.expiration}
    print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}))
    return 0
