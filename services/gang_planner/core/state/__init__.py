"""The planner's state: tables of nodes, shapes, gangs, queues and reservations."""
