"""``hcp router run``: the process of the router for clusters without Routes of their own."""

from __future__ import annotations

from hcp.cli.engine.command import Call, Command, Flag
from hcp.errors import HcpError

COMMAND = Command(
    "router run",
    "Run the router for Routes (what its Deployment starts)",
    long="Follows Routes and leads TLS connections by server name, and HTTP requests by host, to their pods.\n"
    "It drives HAProxy and changes its tables while it runs: no connection is cut by a change.",
    examples=(
        ("On a developer's machine", "{prog} router run --domain apps.example.com --kubeconfig kubeconfig.yaml"),
    ),
    flags=(
        Flag("domain", "string", "", "apps domain of hosts it makes up (default: ingresses.config.openshift.io)"),
        Flag("http-port", "int", 8080, "port for plain HTTP"),
        Flag("https-port", "int", 8443, "port for TLS"),
        Flag(
            "named-port",
            "int",
            0,
            "port for nodes of hosted clusters, which name the host in front of a connection (PROXY protocol); 0: none",
        ),
        Flag("health-port", "int", 8081, "port for health and metrics"),
        Flag("haproxy", "string", "haproxy", "the HAProxy program", metavar="program"),
        Flag("max-connections", "int", 20000, "most connections at a time"),
        Flag(
            "allow-hosts-under-foreign-wildcards",
            "bool",
            False,
            "let a namespace claim a host that lies under a wildcard which another namespace claimed before",
        ),
        Flag(
            "default-certificate",
            "string",
            "",
            "TLS Secret; with it the router ends TLS itself (edge, reencrypt)",
            metavar="namespace/name",
        ),
        Flag("ingress-class", "string", "", "class of the Ingresses to serve (default: none)"),
        Flag(
            "wake-sleeping",
            "bool",
            False,
            "hold connections to hosted APIs that sleep, and have them woken, where their owners want it",
        ),
        Flag("kubeconfig", "string", "", "kubeconfig of the cluster; empty uses the usual places", metavar="file"),
    ),
    handler="hcp.cli.router.run:run",
)


def _secret(text: str) -> str:
    namespace, slash, name = text.partition("/")
    if text and not (namespace and slash and name):
        raise HcpError(f"--default-certificate {text!r} names no Secret", hint="write it as namespace/name")
    return text


def _class(call: Call) -> str:
    name = call.text("ingress-class")
    if name and not call.text("default-certificate"):
        hint = "Ingresses are served with TLS too: name a TLS Secret with --default-certificate namespace/name"
        raise HcpError("--ingress-class needs a certificate", hint=hint)
    return name


async def run(call: Call) -> int | None:
    """Route until the process is told to stop."""
    from hcp.cli.engine.serving import until_stopped
    from hcp.kube import Client, load_config
    from hcp.router.run import serve
    from hcp.runtime import setup_logging

    setup_logging()
    async with Client(load_config(call.text("kubeconfig") or None)) as client:
        return await until_stopped(
            serve(
                client,
                domain=call.text("domain"),
                http_port=call.number("http-port"),
                https_port=call.number("https-port"),
                named_port=call.number("named-port"),
                health_port=call.number("health-port"),
                haproxy=call.text("haproxy"),
                max_connections=call.number("max-connections"),
                foreign_wildcards=call.switch("allow-hosts-under-foreign-wildcards"),
                certificate=_secret(call.text("default-certificate")),
                ingress_class=_class(call),
                wakes=call.switch("wake-sleeping"),
            )
        )
