"""The configurable actions of a cycle that place or admit gangs. `preemption.requests` has those
that evict. Each module has one function `run`.
"""
