"""The RBAC rights of each account: one table (`table`), and the rules generated from it (`rules`).

The rights in NATS are in a table beside the bus (`shared.bus.permissions`).
"""
