"""The watcher's pure core: the picture of the cluster, its change records and its snapshots. No
clock, no I/O.
"""
