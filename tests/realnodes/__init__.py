"""Tests on real nodes: kubelets and containerd on this machine, and on them the image and charts
that `make release` builds of the checkout's commit.

Two nodes live in network, mount and process namespaces of their own; nothing of them is on the
host's network, and no route leads out. See `machine.py` for what this needs of a machine.
"""
