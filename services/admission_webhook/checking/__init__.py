"""Validation of stored objects, run as a process by `tutti migrate check`."""
