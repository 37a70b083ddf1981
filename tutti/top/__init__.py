"""`tutti top queues|nodes`: which queues or nodes hold the most.

Queues as the planner's standby reports them; nodes as the API server does: what their pods ask for.
`nodes` adds up (pure), `drawing` draws (pure), `command` asks and prints.
"""
