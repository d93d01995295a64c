"""The infra side: clients, network policy, load balancers, rights."""
