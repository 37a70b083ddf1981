"""A real Kubernetes control plane for tests and benchmarks.

* ``binaries``: builds the components from their Go modules once and caches them.
* ``cluster``: starts, pauses, kills and stops one control plane on loopback.
* ``client``: a small asynchronous client for its API; ``nodes``: nodes and pods in bulk.
* ``kubelet``: admits, runs and finishes bound pods.
* ``fixtures``: the pytest fixtures; ``__main__``: a control plane to play with by hand.

Nothing in here imports the product: its arithmetic and its client are the oracle that the product
is compared with.
"""
