"""`tutti queues`: what each queue uses, deserves and has reserved, and why.

Asks the standby planner over NATS; `view` prints its answer.
"""
