"""The configurable actions of a cycle that place or admit gangs. `preemption.requests` has those
that evict. Each module has one function `run`, but `reserve`: a cycle reviews reservations before
all actions, and `allocate` has them made where it refuses a gang.
"""
