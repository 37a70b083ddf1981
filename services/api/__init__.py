"""The API service: answers users over HTTPS with Kubernetes' own authorisation (ADR 0092).

Consumes: VERDICTS, CLUSTER (behind the watcher's snapshot) and the newest decisions in DECISIONS,
by durable consumers of its own; HTTPS requests, from the API server (as an aggregated API) or
direct. Emits: answers; questions on `ask.planner.ledger`, `.fragmentation` and `.fit`, and on
`ask.status`; TokenReviews and SubjectAccessReviews. Owns: its serving certificate, the APIService
`v1alpha1.visibility.tutti.dev`, and outside a cluster the Service that this names.

Invariants:
* It writes nothing else, neither to NATS nor to the API server.
* A request is answered only after it was authenticated and authorised; a user sees gangs of
  namespaces in which the user may list pods, and gangs of other namespaces only as counts.
* Everything that a client can make grow is bounded: connections, bodies, watches, what a watch has
  not sent yet, cached reviews, questions in flight.
* Discovery is answered without NATS and without reviews: Kubernetes cannot delete namespaces while
  it fails.
"""
