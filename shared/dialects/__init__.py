"""Dialects: ways in which users declare gangs, and how their objects are read.

A file defines a dialect as `DIALECT`, or several short ones as `DIALECTS`. `protocol.Dialect` lists
what a dialect states, all of it optional but the name. `discovery` finds the files, and everything
else asks `discovery` or `pod_vocabulary`: no other module knows a dialect by name. So adding a
dialect is adding a file (docs/contributing/dialect.md); a dialect with an API of its own brings the
structs that its objects are decoded into as well. An operator comes before the API that it uses to
create its pods (`Dialect.precedence`).

All of it is pure. A reader never raises for what users wrote: it leaves out what cannot be read, or
names it in `errors`. Lists and texts need no limits here: `shared.model.bounds` decides which
object is too large. A reader that multiplies what it reads stops at these bounds.

Not dialects, but used by several of them: `pods` and `shapes` (a pod), `pod_declared` (a group
without an object), `group_metadata` (a group with one), `sub_group_tree` (sub-groups that contain
each other), `conditions` (of a status), `group_references` and `pod_vocabulary` (the keys of all
dialects, merged), `kubebatch_fields`, `requirements` and `settings` (PodGroup and Queue),
`reference_objects`, `storage` and `devices` (objects that the planner looks up),
`owner_kinds`, `owned_gangs` and `workload_sizes` (the gang of an object's pods, which the
controller makes), `field_checks` (validation of JSON), `workloads` and `job_groups` (the gang of a
workload that has no pods yet), `rights` (RBAC).
"""
