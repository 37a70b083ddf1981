"""The planner's tables: columns of integers for nodes, shapes, gangs, queues, reservations."""
