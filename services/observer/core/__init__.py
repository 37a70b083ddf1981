"""The observer's pure core: the cluster as CLUSTER shows it, and the report on each gang.

`cluster_state` keeps pods, nodes and groups; `gangs` groups pods into gangs and records their
progress; `assumed_decisions` keeps decisions until they are answered, and builds the outcomes;
`recount` checks a decision against the cluster state.
"""
