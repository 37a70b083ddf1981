"""Everything that parses input, fed with malformed input: `python -m tests.fuzz`.

A target (`targets.py`) is a parser, what it may raise, and how its input is made: generated from
the very types that it decodes into (`shaping.py`), or a valid example, and then damaged
(`damaging.py`). An input must end in a result or in the typed error, within a time and memory that
its size allows (`running.py`).
"""
