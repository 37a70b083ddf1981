"""Tests on real nodes: kubelets, containerd and containers of our own image, on this machine.

Two nodes live in network, mount and process namespaces of their own; nothing of them is on the
host's network, and no route leads out. See `machine.py` for what this needs of a machine.
"""
