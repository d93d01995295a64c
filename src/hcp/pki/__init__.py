"""Keys, certificate authorities, leaf certificates and kubeconfigs.

Everything is EC P-256: an RSA-2048 key costs some 40 ms, a P-256 key 0.01 ms, and a hosted cluster needs two dozen.
"""

from hcp.pki.certs import (
    KeyPair,
    Leaf,
    issue,
    issue_leaf,
    names_in,
    needs_renewal,
    new_ca,
    new_signing_key,
    not_after,
    pair_problem,
    public_key,
    readable_certificates,
)
from hcp.pki.kubeconfigs import kubeconfig, kubeconfig_yaml

__all__ = [
    "KeyPair",
    "Leaf",
    "issue",
    "issue_leaf",
    "kubeconfig",
    "kubeconfig_yaml",
    "names_in",
    "needs_renewal",
    "new_ca",
    "new_signing_key",
    "not_after",
    "pair_problem",
    "public_key",
    "readable_certificates",
]
