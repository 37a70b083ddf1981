"""The watcher's pure core: the state of the cluster, its change records and its snapshots. No
clock, no I/O.
"""
