"""The observer's pure core: the cluster as CLUSTER shows it, and what follows for each gang.

`cluster_state` keeps pods, nodes and groups; `gangs` distinguishes gangs and counts their progress;
`standing` keeps the decisions that stand; `proving` recounts them; `answers` are the outcomes.
"""
