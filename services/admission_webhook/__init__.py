"""The admission webhook: refuses what cannot be meant, fills in defaults, warns of what never fits.

Consumes: AdmissionReviews over TLS; queues and namespaces from CLUSTER (`cluster.queue`,
`cluster.namespace`, by its own durable consumer, behind the watcher's snapshot); the admission
configuration file.
Emits: answers; asks `ask.planner.fit` for advice.
Owns: its serving certificate, its own two webhook configurations.

Rights in Kubernetes: get, list, watch, create, update, delete of `validatingwebhookconfigurations`
and `mutatingwebhookconfigurations`; create `configmaps` in one namespace (dry-run only). It uses
them to register itself, never while it answers a review.

Invariants:
* What is not ours (another scheduler's pods and jobs, unknown kinds) is allowed unseen.
* It fails open: without queues their check is left out, without a planner the advice is, and the
  configurations say `failurePolicy: Ignore`. A gang that can never fit is warned of, not refused.
* Every violation is reported at once, each with its field's path (`core.judge`, pure).
* It registers only after the API server was seen to reach it (`registration`).
"""
