"""`tutti timeline`: when gangs were on which nodes, and when they waited.

`log_reader` reads the logs from NATS, `history` derives stays and waits from them, or from the API
(pure), `strips` draws them for a terminal and `svg` as a drawing (pure).
"""
