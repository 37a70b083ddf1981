"""Dialects: each file here reads one way in which users declare gangs, and nothing else knows of
it.

A dialect is a module that fits `protocol.Dialect`: `NAME`, `KINDS` (which resources it needs, how
each becomes a neutral object), `status` (what a verdict becomes on its group object) and `validate`
(what admission refuses). All of it is pure. `discovery.dialects()` finds the files;
`rights.rights()` makes the table of RBAC rights from their kinds. Adding a dialect is adding a
file.

Not dialects, but what several of them share: `pods` and `shapes` (reading a pod),
`kubebatch_fields` and `wishes` (PodGroup and Queue as kube-batch first had them, and what Volcano
added), `reference_objects`, `storage` and `devices` (what the planner looks up), `checking`
(validating JSON).
"""
