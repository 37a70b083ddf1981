"""Errors of the watcher."""


class ClusterWentBack(Exception):
    """A list has an older resourceVersion than one known before: etcd was restored from a backup.

    Only a new epoch may override newer resourceVersions, so the process begins a new generation.
    """
