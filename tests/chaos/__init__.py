"""Chaos on the real thing: ``python -m tests.chaos --minutes 3 --seed 7`` (or ``make chaos``).

A real kube-apiserver, etcd, kube-scheduler and nats-server, and `tutti up` with real processes;
gangs come and go while all of them are killed, frozen and restarted. The judge reads only
the API server's watches (`audit`).
"""
