"""The binder's pure core: what one decision needs from the API server, and what its answers mean.

No clock, network, randomness or asyncio: instants and answers come in as arguments, requests go out
as values. `answers` is the table of meanings, `admission` says which decisions may be carried out
at all, `machine` is the protocol of one decision, `outcome` puts its result into the message that
the planner reads.
"""
