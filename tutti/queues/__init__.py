"""`tutti queues`: who has what, deserves what, is promised and owed what, and why.

Asks the planner's standby over NATS; `showing` prints, `command` is what is typed.
"""
