"""`tutti top queues|nodes`: who holds most of what there is.

Queues as the planner's standby tells them; nodes as the API server does: what their pods ask for.
`nodes` adds up (pure), `drawing` draws (pure), `command` asks and prints.
"""
