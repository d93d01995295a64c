"""What can be asked about embedded clusters: status, logs, list, kubeconfig."""
