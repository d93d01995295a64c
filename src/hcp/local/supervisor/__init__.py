"""Keeps the processes of one embedded cluster running.

It runs detached, as process 1 of the cluster's own pid namespace where there is one, so that its end is the end
of everything it started. Standard library only: it stays small and starts fast.
"""
