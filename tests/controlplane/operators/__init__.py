"""Real operators that declare gangs, built from their Go modules and run as processes.

`building` builds and caches them; `training` and `mpi` are Kubeflow's, `managers` has JobSet and
LeaderWorkerSet, whose webhooks the API server calls on the loopback address, like those of `kueue`.
Each yields a running operator and stops it at the end of the block.
"""
