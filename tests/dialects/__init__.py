"""Conformance of each gang API: cases as YAML, played with all services on two clusters.

A folder is an API. Its files hold cases: objects as the users of that API write them, and the
placements, statuses and Events that must follow. `features.yaml` lists the rows and columns of
docs/dialects.md, and why a feature has no case.
"""
