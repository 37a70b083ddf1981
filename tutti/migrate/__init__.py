"""`tutti migrate check`: what would change in a cluster if Tutti replaced another scheduler.

Reads and never writes. `cluster_reader` reads the cluster into `cluster_facts`, `rule_checks` runs
the webhook's rules and the planner's parser in processes of their own. `comparison` has pure
functions from the facts to `findings`, which prints them.
"""
