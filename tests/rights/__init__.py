"""Proves the table of rights both ways on a real API server: nothing that the suite does is denied,
and no right is granted that it does not use.

With `TUTTI_AUDIT=FOLDER` every control plane of the tests writes an audit log there, and every
`tutti up` of theirs runs as the chart has it (`guarded_up`): each service with the token of its own
ServiceAccount, with its own NATS user, over TLS. `audit` judges the logs.
`python -m tests.rights` plays the tests so and prints the judgement; `make certify` runs it.
"""
