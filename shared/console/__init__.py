"""The console: the files that a browser loads, and the headers with which they are served.

They are built from `console/` by `make console` (ADR 0092). The API service and `tutti console`
serve them.
"""
