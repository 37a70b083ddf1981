"""Replays one segment of a recording through the core, and says where it decides otherwise.

`python -m services.gang_planner.replay SEGMENT` exits with 1 when a record differs. A segment comes
from the standby's `--recording-dir`; every record in it names the cycle that made it.
"""
