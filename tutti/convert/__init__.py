"""`tutti migrate queues`: queues and quotas of other projects as a tree of Volcano Queues, once.

`kueue`, `kai` and `yunikorn` read the files, `queue_tree` makes amounts and names fit Volcano's
rules. Everything without an equivalent is listed, in the output and on standard error. Pure, apart
from `command`.
"""
