"""The binder: carries out decisions, each with the effect of exactly once.

Consumes: `decisions.act.>` of DECISIONS, by the durable work consumer that all binders share.
Emits: one outcome per decision on `outcomes.<gang id>.<sequence>`; the first one written wins.
Owns: nothing. A decision in progress when a binder dies is delivered again, to any binder.

Rights in Kubernetes: `tutti.rights.table`, with their reasons.
API writes: one Binding per pod; two where the decision asks for a pre-flight; one PATCH and one
DELETE per pod of a release; more only when the API server does not answer or sheds load. Reads: one
pod per conflict or unanswered member.

Invariants:
* No request is sent before the decision is durable: it is read from the stream.
* A Binding carries the pod's UID as precondition; sent twice, it is the same as sent once.
* A message is acknowledged after its outcome is stored, never before.
* A pod is deleted under its UID only: a new pod of the same name is never touched.
* No request that writes is sent for a delivery that another binder may have by now.
* No pod is bound before its claims have their volumes and devices.
* How a decision is carried out is `core.machine` and `core.removal`, pure; what is checked, and
  why, is ADR 0002.
"""
