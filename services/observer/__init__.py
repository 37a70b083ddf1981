"""The observer: takes the binders' place, so that Tutti can be observed beside another scheduler.

Consumes: DECISIONS (what is to be done), CLUSTER behind the watcher's snapshot (what the other
    scheduler does). Emits: one outcome per decision on OUTCOMES, which says that nothing was bound;
    the report on
`ask.observer.report`, and as a file. Owns: the rows of the report. Rights in Kubernetes: none, it
has no token and no client.

A decision *stands* for a while, as if it had been carried out: the planner keeps its room
meanwhile, so that gangs compete for room as they would. What the other scheduler binds takes that
capacity over at once (for the planner, CLUSTER ends an assumption); what it has not bound when the
time is over goes back to waiting, as after a conflict.

Invariants:
* Nothing is written anywhere but OUTCOMES and the report file.
* Every decision to bind is recounted (`core.proving`) before it is answered, and answered once; a
  restart answers again what an earlier life left open, and the log refuses what it had answered.
* The report is bounded: gangs that have gone leave it, oldest first.
"""
