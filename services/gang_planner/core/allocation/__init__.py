"""From a gang in the backlog to its decision: attempts, batches, reservations."""
