"""The observer has no errors of its own: what the rival does is never one, and what goes wrong on
the bus is said there.
"""
