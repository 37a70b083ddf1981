"""`tutti demo`: the experiment of the seeds on an embedded cluster, shown live, its claims checked.

`command` reads the flags; `session` starts the embedded cluster in this process and `tutti up`
(`tutti_process`) as another one, plays the `acts` and stops everything. An act submits the seeds'
own `manifests` (`tfjobs`) through a `stage`, waits for what the `observer` sees at the API server,
and makes claims. A claim is a pure function (`claims`) of the recorded `observations`.
`pod_by_pod` is the scheduler of the first act, `killer` kills processes on request, `screen` shows
it all.
"""
