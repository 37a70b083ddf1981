"""`tutti demo`: the experiment of the seeds on an embedded cluster, shown live, its claims checked.

`command` starts the embedded cluster in this process and `tutti up` (`tutti_process`) as another
one, plays the `acts` and stops everything. An act submits the seeds' own `manifests` through a
`stage`, waits for what the `observer` sees at the API server, and makes claims. A claim is a pure
function of the recorded observations (`claims`). `pod_by_pod` is the scheduler of the first act,
`screen` shows it all.
"""
