"""`tutti trace`: the timeline of a gang.

`records` finds the gang among the verdicts and reads its records from DECISIONS and OUTCOMES (with
a reader's rights: nothing is written), `jaeger` asks Jaeger, if its address is given, for the spans
that other services exported, `timeline` is a pure function from both to lines, which `command`
prints.
"""
