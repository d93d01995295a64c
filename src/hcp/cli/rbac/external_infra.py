"""``hcp rbac external-infra``: the rights the owner of an infra cluster has to grant, as YAML."""

from __future__ import annotations

from hcp.cli.engine.command import Call, Command, Flag, UsageError

COMMAND = Command(
    "rbac external-infra",
    "Print the rights an external infra cluster has to grant",
    long="Prints a Role for the namespace of the virtual machines, a small ClusterRole and their bindings. Apply it\n"
    "on the infra cluster; the kubeconfig of that user or ServiceAccount is what create cluster takes.",
    examples=(
        ("For a ServiceAccount", "{prog} rbac external-infra --infra-namespace vms | kubectl apply -f -"),
        ("For a user", "{prog} rbac external-infra --infra-namespace vms --user alice"),
    ),
    flags=(
        Flag("infra-namespace", "string", "", "namespace of the virtual machines", required=True),
        Flag("user", "string", "", "grant to this user instead of a ServiceAccount"),
        Flag("group", "string", "", "grant to this group instead of a ServiceAccount"),
        Flag("token", "bool", False, "also make a long-lived token for the ServiceAccount"),
    ),
    exclusive=(("user", "group", "token"),),
    handler="hcp.cli.rbac.external_infra:run",
)


def run(call: Call) -> int | None:
    from hcp.api.names import label_problem
    from hcp.cli.engine.render import documents, write
    from hcp.preflight.infra_rights import manifests

    namespace = call.text("infra-namespace")
    problem = label_problem(namespace)
    if problem:
        raise UsageError(f'invalid argument "{namespace}" for "--infra-namespace" flag', cause=f"it {problem}")
    objects = manifests(namespace, user=call.text("user"), group=call.text("group"), token=call.switch("token"))
    write(documents(objects), "", sensitive=False)
    return 0
