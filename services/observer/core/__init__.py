"""The observer's pure core: the cluster as CLUSTER tells it, and what follows for each gang.

`cluster_state` keeps pods, nodes and groups; `gangs` tells gangs apart and counts how they get on;
`standing` keeps the decisions that stand; `proving` recounts them; `answers` are the outcomes.
"""
