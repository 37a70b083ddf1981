"""`tutti timeline`: when gangs were on which nodes, and when they waited.

`reading` takes the logs from NATS, `story` makes stays and waits of them (pure), `strips` draws
them for a terminal and `svg` as a drawing (pure), `command` is what is typed.
"""
