"""Replays one segment of a recording through the core, and reports where it decides otherwise.

`tutti replay SEGMENT` (this package as a program) exits with 1 when a record differs. With
`--scheduler-conf FILE` it reports the decisions of that configuration that differ. A segment comes
from the standby's `--recording-dir`; every record in it names the cycle that made it.
"""
