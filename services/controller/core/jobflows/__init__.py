"""What becomes of JobFlows: which Jobs they start, and what their status says."""
