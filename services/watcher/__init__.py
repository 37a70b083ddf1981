"""The watcher: publishes the state of the cluster to planners and other readers.

Consumes: lists and watches of what the dialects need (`shared.dialects`), each kind once, all
namespaces. Emits: CLUSTER, a log of packed neutral changes, and answers `ask.watcher.snapshot` with
the whole cluster state in pages. Owns: the cluster state, and its epoch. Never writes to
Kubernetes: list and watch are its only rights.

Invariants:

- One writer: every append to CLUSTER is fenced. A watcher that was overtaken begins again as a
  standby.
- A change is sent when an object's neutral model changed, never for a heartbeat.
- `cluster.synced` is renewed each second, only while every watch is alive; without it readers stop
  deciding.
- A snapshot equals the log up to the sequence that it names.

The path of a change: `resource_watches` decodes a batch of a watch, `state` reads it into neutral
objects, `core.cluster_state` compares these with the known ones, and `cluster_publisher` appends
the difference.

A standby holds no watches: it waits for the lease, lists on takeover (10,000 pods take about a
second), opens a new epoch, and readers replace their cluster state by its snapshot.
"""
