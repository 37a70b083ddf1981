"""The admission webhook: refuses invalid objects, sets defaults, and warns of gangs that never fit.

Consumes: AdmissionReviews over TLS; queues, namespaces and PriorityClasses from CLUSTER (by its own
durable consumer, after the watcher's snapshot); the admission configuration file.
Emits: answers to reviews; requests to `ask.planner.fit` for advice; reads of PodGroups that users'
pods name.
Changes: default values, and the scheduler name of pods of gangs in namespaces that opted in
(`core.opt_in`).
Owns: its serving certificate, its own two webhook configurations.

Rights in Kubernetes: `tutti.rights.table`, with their reasons. The look-up of a PodGroup
(`group_lookup`) is the only request to the API server for a review, and of few reviews.

Invariants:
* Objects of other schedulers and of unknown kinds are allowed unread.
* It fails open: unknown queues are not checked, without a planner there is no advice, and the
  configurations have `failurePolicy: Ignore`. A gang that can never fit gets a warning.
* Only pods of gangs in namespaces that opted in are refused while no replica answers (ADR 0067).
* All violations are reported at once, each with its field's path (`shared.admission`, pure).
* It registers only after a review from the API server has arrived (`reachability`).
"""
