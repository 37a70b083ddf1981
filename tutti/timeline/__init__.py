"""`tutti timeline`: when gangs were on which nodes, and when they waited.

`history` derives stays and waits from the API (pure), `strips` draws them for a terminal and `svg`
as a drawing (pure).
"""
