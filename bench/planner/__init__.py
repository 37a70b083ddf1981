"""How fast the planner decides, in process: placements, topology, terms about pods, evictions, full
clusters, and how the time of a pod grows with the number of nodes.

`python -m bench.planner` runs the table of issue 6 and ends with one line of its figures.
"""
