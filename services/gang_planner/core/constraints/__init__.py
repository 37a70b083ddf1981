"""Rules that exclude nodes for a pod."""
