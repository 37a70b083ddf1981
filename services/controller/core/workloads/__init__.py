"""PodGroups that were made for the pods of a workload: how large, how long. Pure.

`sizes`: the gang that a workload's pods are. `upkeep`: what becomes of its PodGroup when the
workload changes.
"""
