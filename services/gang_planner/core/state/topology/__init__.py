"""Network topology: domains of HyperNodes and of node labels."""
