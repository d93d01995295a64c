"""Addresses, ports, packet rules and load balancer addresses of an embedded cluster."""
