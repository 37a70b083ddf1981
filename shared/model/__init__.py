"""The neutral model: frozen structs for pods, nodes, pod groups and queues of all dialects.

Amounts and instants are integers; see `objects` for their units. No I/O.
"""
