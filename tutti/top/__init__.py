"""`tutti top queues|nodes`: the queues or nodes with the highest usage.

Queues as the standby planner reports them; nodes as the API server does: the requests of their
pods. `nodes` adds up (pure), `tables` draws (pure), `command` asks and prints.
"""
