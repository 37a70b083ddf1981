"""Volcano's own end-to-end tests, each written again and run on a real control plane.

What a case there asserts is asserted here through the same interface: phases as a watch shows them,
conditions, events by reason, names, what `vcctl` prints. The nodes are simulated and their pods
hold no processes (`shell`), so what a container prints or reaches is not played. `e2e` is a cluster
of four workers, `bare` one without nodes; `Cluster` is what a case acts through, `manifests` builds
its objects. `docs/compatibility.md` has the table of what is played and what it comes to.

Cases without a mark are part of `make test`; the rest is marked ``certify``.
"""
