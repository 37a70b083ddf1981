"""Records applied to the state."""
