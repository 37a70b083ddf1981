"""One suite of the API's behaviour, run against the embedded cluster and a real kube-apiserver.

What differs from the real one is a bug in the embedded one. Tests marked `simulated` ask the API
server of `tests.simulation`, too: it serves only the requests that the simulation sends.
"""
