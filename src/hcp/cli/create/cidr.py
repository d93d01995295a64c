"""`--cluster-cidr`, `--service-cidr`, `--machine-cidr`: read as Go does, and checked against each other."""

from __future__ import annotations

import ipaddress

from hcp.cli.engine.command import UsageError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
FORM = "an address range such as 10.132.0.0/14 or fd01::/48"


def read(flag: str, noun: str, value: str) -> Network:
    address, slash, bits = value.partition("/")
    try:
        if not slash or not (bits.isascii() and bits.isdigit()) or "%" in address or (len(bits) > 1 and bits[0] == "0"):
            raise ValueError("not ADDRESS/BITS")
        return ipaddress.ip_network(value, strict=False)
    except ValueError as error:
        cause = f"parsing {noun} {value!r}: {error}"
        raise UsageError(f'invalid argument "{value}" for "--{flag}" flag', cause=cause, hint=f"{FORM}") from None


def _one_of_each_family(flag: str, values: list[tuple[str, Network]]) -> None:
    if flag == "machine-cidr" or len({network.version for _, network in values}) == len(values):
        return
    value, network = values[-1]
    raise UsageError(
        f'invalid argument "{value}" for "--{flag}" flag',
        cause=f"two ranges of IPv{network.version} are given",
        hint=f"two are possible as one of each family, for example --{flag} 10.132.0.0/14 --{flag} fd01::/48",
    )


def check(given: dict[str, list[str]]) -> list[str]:
    """Refuses what cannot be read or overlaps; returns warnings. Keys are flag names."""
    nouns = {"cluster-cidr": "ClusterCIDR", "service-cidr": "ServiceCIDR", "machine-cidr": "MachineCIDR"}
    seen: list[tuple[str, str, Network]] = []
    warnings = []
    for flag, values in given.items():
        if flag != "machine-cidr" and len(values) > 2:
            raise UsageError(
                f'invalid argument "{values[2]}" for "--{flag}" flag',
                cause=f"{len(values)} ranges are given",
                hint="at most two are allowed, one per address family",
            )
        _one_of_each_family(flag, [(value, read(flag, nouns[flag], value)) for value in values])
        for value in values:
            network = read(flag, nouns[flag], value)
            if str(network) != value and network.network_address != ipaddress.ip_address(value.partition("/")[0]):
                warnings.append(f"--{flag} {value} has bits set behind the prefix; the range is {network}")
            for other_flag, other_value, other in seen:
                if network.version == other.version and network.overlaps(other):
                    raise UsageError(
                        f'invalid argument "{value}" for "--{flag}" flag',
                        cause=f"it overlaps with --{other_flag} {other_value}",
                        hint="cluster, service and machine networks need ranges of their own, for example "
                        "--cluster-cidr 10.132.0.0/14 --service-cidr 172.31.0.0/16",
                    )
            seen.append((flag, value, network))
    return warnings
