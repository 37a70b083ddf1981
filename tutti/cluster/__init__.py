"""A Kubernetes API server in one Python process, for people who have no cluster: the demo's ground and the fast tests'.

A means, not a product: it imitates what Tutti and its tests touch, and one API suite (`tests/api_suite`) runs against it
and against the real server, so what differs is a bug here. Nothing is kept on disk.

From the inside out: `objects`, `errors`, `selectors`, `patches`, `schema`, `quantities` (values) < `resources` (kinds) <
`store` (objects and their history) < `validation`, `kinds`, `pods`, `crds` (rules per kind) < `admission` (webhooks) <
`api` (the verbs) < `garbage` (owners and namespaces), `kubelet` (simulated nodes), `tf_operator` (a stand-in) and
`watching`, `discovery`, `tables`, `misbehave`, `server` (HTTP) < `embedded` (all of it, started and stopped).

Left out, on purpose: CEL, server-side apply, API priority, RBAC, quotas' enforcement, conversion webhooks, built-in
controllers other than garbage collection. Strategic merge patch is the simple part of it (see `patches`).
"""
