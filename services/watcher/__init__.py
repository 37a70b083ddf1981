"""The watcher: publishes the state of the cluster to planners and other readers.

Consumes: lists and watches of what the dialects need (`shared.dialects`), each kind once, all
namespaces. Emits: CLUSTER, a log of packed neutral changes, and answers `ask.watcher.snapshot` with
the whole cluster state in pages. Owns: the cluster state, and its epoch. Never writes to
Kubernetes: list and watch are its only rights.

Invariants:

- One writer: every append to CLUSTER is fenced. A watcher that was overtaken exits and starts again
  as standby.
- A change is sent when its neutral model changed, never for a heartbeat; what is not sent is equal
  for all readers.
- `cluster.synced` is renewed each second only while every watch is alive; readers stop deciding
  when it is not.
- A snapshot equals the log up to the sequence that it names.

A standby holds no watches: it waits for the lease, lists on takeover (10,000 pods take about a
second), opens a new epoch, and readers replace their cluster state by its snapshot.
"""
