"""What `make certify` does: every long test and benchmark as a part of its own, and a page that
says what came of each.

`parts` are what there is to run, `running` runs one and remembers how it ended, `page` writes the
certificate.
"""
