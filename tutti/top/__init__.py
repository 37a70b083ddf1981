"""`tutti top queues|nodes`: the queues or nodes with the highest usage.

The usage of queues comes from the standby planner, that of nodes from the requests of their pods in
the API server. `tables` adds the requests up and draws (pure), `command` reads and prints.
"""
