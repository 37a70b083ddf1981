"""PodGroups of pods that name none: their manifests (`bare_pods`), the size of a workload's gang
(`sizes`), and their updates when the workload changes (`upkeep`). Pure.
"""
