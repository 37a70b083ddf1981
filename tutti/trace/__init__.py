"""`tutti trace`: the timeline of a gang.

`records` finds the gang among the verdicts and reads its records from DECISIONS and OUTCOMES (with
a reader's rights: nothing is written), `timeline` is a pure function from them to lines, as is
`api_timeline` from the API's answers. `command` prints them, with spans that services exported.
"""
