"""The gang planner: decides which gangs are bound where, and no other service does.

Consumes: CLUSTER (and the watcher's snapshots), DECISIONS (its own memory, and what an earlier
planner left), OUTCOMES. Emits: decisions and notes on DECISIONS, fenced; verdicts on VERDICTS;
answers on `ask.planner.fit` and `.ledger` (the standby only). Owns: the planner's state (`core`),
its place in the three logs, its lease. Rights in Kubernetes: none, it has no token.

Invariants:
* Nothing is decided before everything in DECISIONS has been applied: the fence refuses the append
  otherwise.
* A decision exists from its acknowledgement on; verdicts that depend on it are published after it.
* A refused append means another writer: the process ends at once and starts again as a standby.
* The core is pure (`core.planner.Planner`); this package's shell gives it records and instants and
  nothing else.
"""
