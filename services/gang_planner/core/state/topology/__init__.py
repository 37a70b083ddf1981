"""Which nodes are close together: domains of HyperNodes and of node labels."""
