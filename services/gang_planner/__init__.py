"""The gang planner: the only service that decides which gangs are bound to which nodes.

Consumes: CLUSTER (and the watcher's snapshots), DECISIONS (its own memory, and what an earlier
planner left), OUTCOMES. Emits: decisions and notes on DECISIONS, fenced; verdicts on VERDICTS;
answers on `ask.planner.fit`, `.ledger` and `.fragmentation` (the standby only). Owns: the planner's
state (`core`), its place in the three logs, its lease. Rights in Kubernetes: none, it has no token.

Invariants:
* A planner has applied all of DECISIONS before it decides: the fence refuses the append otherwise.
* A decision exists from its acknowledgement on; verdicts that depend on it are published after it.
* A refused append means another writer: the process ends at once and starts again as a standby.
* The core is pure (`core.planner.Planner`); its only inputs are the records and instants that this
  package's shell passes to it.

The path of a record: `log_follower` reads it into the `inbox`; `service` takes everything that has
arrived, and `applier` applies it to the core; if this planner is the writer, `decision_writer` runs
a cycle and appends its decisions. `reporting` and `tracing` follow the same records.
"""
