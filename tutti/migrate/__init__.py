"""`tutti migrate`: a switch from another scheduler to Tutti. `check` reports what would change in a
cluster, `observe` what `tutti up --observe` found beside the other scheduler (`observation`), and
`queues` converts queues (`tutti.convert`).

Reads and never writes. `cluster_reader` reads the cluster into `cluster_facts`, and judges it by
the webhook's rules and the planner's parser. `comparison` has pure functions from the facts to
findings, and prints them.
"""
