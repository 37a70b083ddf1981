"""Parsing and validation of `volcano-scheduler.conf`."""
