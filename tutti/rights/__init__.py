"""The rights of each account in Kubernetes: one table (`table`), and what is generated from it
(`rendering`).

NATS has a table of its own beside the bus (`shared.bus.permissions`).
"""
