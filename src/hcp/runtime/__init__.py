"""The engine of a controller: informers, work queue, loop, leases, events, conditions, metrics."""
