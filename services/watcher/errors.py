"""Errors of the watcher."""


class ClusterWentBack(Exception):
    """A list answered with an older resourceVersion than one known before: etcd was restored from a
    backup.

    Only a new epoch may override newer resourceVersions, so the process begins a new generation.
    """


class NotSynced(Exception):
    """A question came before the cluster state was complete."""
