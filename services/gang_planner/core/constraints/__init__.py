"""What keeps a pod off a node."""
