"""`tutti trace`: what happened to a gang, when, as a timeline.

`gathering` finds the gang among the verdicts and reads its records from DECISIONS and OUTCOMES
(with a reader's rights: nothing is written), `jaeger` asks Jaeger for what other services exported
of it, if its address is given, `timeline` is a pure function from that to lines, `showing` prints
them.
"""
