"""Where a pod may run, as kube-scheduler's own framework says and as our reader and planner say.

`scheduler` asks the Go program `tests/controlplane/oracle`, `planner` asks ours, `clusters` draws
what both are asked. What differs on purpose is in `differences`, with its reason.
"""
