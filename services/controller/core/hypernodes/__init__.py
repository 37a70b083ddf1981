"""HyperNodes: how many nodes each has, and which there should be by the labels of nodes."""
