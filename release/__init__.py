"""What `make release` builds from a commit, and nothing else: docs/releasing.md.

`python -m release` exports the commit to a folder of its own and builds from that, so files that
are not committed are in no artefact. Every artefact is a function of the commit, of the locks in
requirements/ and of the arguments: two builds give the same bytes.
"""
