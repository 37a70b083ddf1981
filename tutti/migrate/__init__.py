"""`tutti migrate check`: what would change in a cluster if Tutti replaced another scheduler.

Reads and never writes. `cluster_reader` reads the cluster into `cluster_facts`, and judges it by
the webhook's rules and the planner's parser. `comparison` has pure functions from the facts to
findings, and prints them.
"""
