"""What `up` says at its end."""

from __future__ import annotations

from hcp.local.lifecycle.up import Outcome


def summary(outcome: Outcome) -> str:
    spec = outcome.spec
    name = "" if spec.name == "default" else f" --name {spec.name}"
    if not outcome.changed:
        return f"Cluster '{spec.name}' (profile {spec.profile}) is up at {spec.server}; nothing had to be done."
    total = sum(outcome.seconds.values())
    lines = [f"Cluster '{spec.name}' (profile {spec.profile}) is up at {spec.server} after {total:.0f} s."]
    if spec.has_node:
        plan = spec.addresses
        lines += [
            *(
                f"  Pods {stack.pods}, Services {stack.services}, LoadBalancer addresses {stack.load_balancers}"
                for stack in plan.stacks
            ),
            *([f"  Addresses for MetalLB's pools: {plan.pool_range}"] if spec.has_metallb else []),
            f"  Routes are answered at *.{plan.apps_domain} ({', '.join(stack.router for stack in plan.stacks)})",
        ]
    lines += [
        f"  Use it:   hcp local kubeconfig{name} > {spec.name}.kubeconfig",
        f"  Look:     hcp local status{name}",
        f"  Stop:     hcp local down{name}   (--purge removes its data too)",
    ]
    return "\n".join(lines)
