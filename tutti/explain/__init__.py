"""`tutti explain-dialect`: how Tutti understands manifests, and objects of a cluster.

`shared.explanation` makes the report, `live_objects` reads the objects of a cluster, `view` prints.
Nothing is written.
"""
