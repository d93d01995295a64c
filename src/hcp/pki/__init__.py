"""Certificate authorities, leaf certificates, rotation, kubeconfigs."""
