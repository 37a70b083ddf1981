"""From a gang to nodes for its members: how often a shape fits, distribution, and the decision."""
