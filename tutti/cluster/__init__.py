"""A Kubernetes API server in one Python process, for users without a cluster.

It is a means, not a product: it imitates what Tutti, its demo and its tests use. One API suite
(`tests/api_suite`) runs against it and the real server, so a difference is a bug here. It keeps
nothing on disk.

From the inside out: `objects`, `errors`, `selectors`, `patches` (values) < `resources` (kinds) <
`store` (objects and their history) < `pods`, `crds`, `kinds` (rules) < `admission` (webhooks) <
`api` (the verbs) < `garbage` (owners, namespaces), `kubelet` (simulated nodes), `aggregation` (APIs
of other servers), `discovery`, `watches`, `tables`, `server` (HTTP) < `embedded` (all of
it, started and stopped).

What is left out, and why: ADR 0007.
"""
