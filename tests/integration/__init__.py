"""The whole suite on a real control plane: gangs, constraints, bad input, bad luck.

`stage.py` is what a test acts through, `suite.py` the running `tutti up`, `auditor.py` an observer
that judges every test by the API server's watch alone. Not covered: speed (`bench/`), starting and
stopping (`tests/tutti/up`).
"""
