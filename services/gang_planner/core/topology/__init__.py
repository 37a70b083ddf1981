"""Which nodes are close together: domains of HyperNodes and of node labels, and where among them a
gang is tried.
"""
