"""Mutants of the product that the fast tests must notice.

`mutants/*.txt` lists them: one change of one file, and the promise that it breaks. `python -m
tests.mutation` (or `make certify`) runs the tests of each file against its mutants, and states
which mutants no test notices. An entry is

    ## services/binder/api.py
    * The promise that the mutant breaks, as a sentence.
    - text that occurs in the file exactly once, over one or several lines
    + what replaces it
    = why no test can notice it (only of an equivalent mutant)

`test_mutation.py` checks with every run of the tests that each text still occurs exactly once.

The last results, of 29 November 2026. No mutant survives that is not named as equivalent, with its
reason, in its list.

    | area      | mutants | dead | surviving | equivalent |
    | binder    |     110 |  110 |         0 |          0 |
    | api       |      73 |   73 |         0 |          0 |
    | security  |      40 |   40 |         0 |          0 |
    | lifecycle |     152 |  149 |         0 |          3 |
    | ledgers   |     138 |  138 |         0 |          0 |
"""
