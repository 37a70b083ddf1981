"""What the cluster looks like, in columns of integers: nodes, shapes, gangs, queues, room."""
