"""The neutral model: frozen structs for pods, nodes, pod groups and queues, whatever dialect they
came from.

Integers only, with the unit in the name; no I/O, no Kubernetes spelling.
"""
