"""What becomes free, where and when, and for which waiting gangs it is kept.

`profile` knows when gangs end, `plan` finds the earliest instant and the nodes of a waiting gang,
and `curtain` hides from other gangs what they must leave. `reservations` has the reservations of a
cycle, which are notes in the log.
"""
