"""Runs the planner forward under a virtual clock, on a copy that nothing else uses: what it decides
is carried out at once, and time jumps from one event to the next.
"""
