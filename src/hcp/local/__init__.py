"""The embedded management cluster: `hcp local up | status | logs | down | kubeconfig | list`."""
