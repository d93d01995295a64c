"""``hcp ignition-server run``: the process of the one bootstrap server of a management cluster."""

from __future__ import annotations

from hcp.cli.engine.command import Call, Command, Flag

COMMAND = Command(
    "ignition-server run",
    "Run the node bootstrap server (what its Deployment starts)",
    long="Hands node documents to booting VMs. It reads only Secrets of its own namespace and needs no restart for\n"
    "new documents, tokens or certificates.",
    examples=(("On a developer's machine", "{prog} ignition-server run --kubeconfig kubeconfig.yaml"),),
    flags=(
        Flag("namespace", "string", "hypershift", "namespace that holds the documents"),
        Flag("port", "int", 9090, "port of the HTTPS server"),
        Flag("metrics-port", "int", 8080, "port for metrics and health over plain HTTP"),
        Flag("kubeconfig", "string", "", "kubeconfig of the management cluster; empty uses the usual places"),
    ),
    handler="hcp.cli.ignition_server.run:run",
)


async def run(call: Call) -> int | None:
    """Serve until the process is told to stop."""
    import logging

    from hcp.cli.engine.serving import until_stopped
    from hcp.ignition.run import serve
    from hcp.kube import Client, load_config

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    async with Client(load_config(call.text("kubeconfig") or None)) as client:
        return await until_stopped(
            serve(
                client,
                namespace=call.text("namespace"),
                port=call.number("port"),
                metrics_port=call.number("metrics-port"),
            )
        )
