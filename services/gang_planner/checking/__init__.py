"""Judges a scheduler's configuration before a planner is started with it: for `tutti migrate`."""
