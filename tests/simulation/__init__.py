"""The whole suite in one process on a virtual clock: real services, a simulated bus, API server and
world, every kind of fault, and checkers that look after every step.

`loop` is time and the scheduling of simulated processes (`Generation`); `patches` puts the virtual
clock and seeded randomness under the services; `nats_server` and `bus` stand in for NATS, `suite`
starts the services and restarts those that die. `kube_server` and `kube_client` stand in for the
API server, `world` for nodes, kubelets, controllers and users; `checkers` judge. In some runs
gangs ask for more than room: `claims`, `volumes` and `devices`, judged by `claim_checkers`.

One number, the seed, decides everything: two runs of one seed on one commit are equal byte for
byte.
"""
