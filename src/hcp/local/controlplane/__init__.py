"""The control plane of an embedded cluster: certificates, encryption, command lines."""
