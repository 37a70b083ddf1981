"""`tutti trace`."""
