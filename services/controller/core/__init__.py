"""The pure cores of the controllers. Instants are arguments; nothing here waits or sends.

`statuses` plans what a verdict requires to be written, `jobs` the steps of Jobs, `queues`,
`cronjobs` and `jobflows` the writes for these kinds, `hypernodes` and `workloads` the objects
derived from nodes and pods. `events` builds the bodies of Events.
"""
