"""`tutti fits -f FILE`: would these gangs fit now, where, or what is missing?

Nothing is created. The file's objects are expanded to the pods that their controllers would make,
and the planner's standby is asked.
"""
