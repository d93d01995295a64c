"""What measures inside a guest: metrics-server for people and autoscalers, Prometheus and those it asks."""
