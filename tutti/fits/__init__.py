"""`tutti fits -f FILE`: whether these gangs would fit now, on which nodes, or what they lack.

Nothing is created. `admission` validates the manifests, `expansion` expands them to the pods that
their controllers would create, and the standby planner is asked.
"""
