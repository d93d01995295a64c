"""The operator process: wiring, leader election, health."""
