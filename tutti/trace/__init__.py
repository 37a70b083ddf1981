"""`tutti trace`: the timeline of a gang.

`timeline` is a pure function from the API's answers to lines; `command` prints them, with spans
that services exported.
"""
