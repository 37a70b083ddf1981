"""`tutti pod`: the pods of Jobs and of queues."""
