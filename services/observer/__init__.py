"""The observer: takes the binders' place, so that Tutti can run beside another scheduler without
binding a pod.

Consumes: DECISIONS, and CLUSTER behind the watcher's snapshot (what the other scheduler does).
Emits: one outcome per decision on OUTCOMES, which says that no pod was bound; the report, on
`ask.observer.report` and as a file. Owns: the rows of the report. Rights in Kubernetes: none, it
has no token and no client.

A decision is *assumed* for a while, as if it had been carried out: the planner keeps its
reservation, so that gangs compete for capacity as they would. Pods that the other scheduler binds
take over their capacity at once (for the planner, CLUSTER ends the reservation); the members that
it has not bound when the time is over wait again, as after a conflict.

Invariants:
* It writes to OUTCOMES and the report file only.
* Every decision to bind is recounted (`core.recount`) before it is answered, and answered once;
  after a restart it answers again, and OUTCOMES refuses a second outcome.
* The report is bounded: gangs that are gone leave it, oldest first.
"""
