"""`tutti queues`: what each queue has, deserves, is promised and is owed, and why.

Asks the planner's standby over NATS; `showing` prints, `command` is what is typed.
"""
