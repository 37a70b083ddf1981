"""`tutti demo`: the seeds' experiment on an embedded cluster, shown live, its claims checked.

`command` reads the flags; `playing` starts everything, plays the acts and
stops everything.
The cluster is a process of its own (`ground`), `tutti up` another (`processes`), so what is shown
is what any cluster would see. `acts` shows the experiment through a `stage`: it submits the seeds'
own `manifests`, waits for what an `observer` sees at the API server, and claims. A claim is a pure
function (`claims`) of that observer's `record`: nothing is believed because the story says so.
`pod_by_pod` is the contrast, `killing` the bad luck, `screen` what one sees.
"""
