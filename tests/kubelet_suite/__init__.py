"""One suite of a kubelet's behaviour, run against everything that plays kubelets.

Those of the embedded cluster, the fake ones of tests on a real API server with and without
processes in their pods, and, for tests marked `simulated`, those of the simulation.
"""
