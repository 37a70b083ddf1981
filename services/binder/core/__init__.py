"""The binder's pure core: what one decision needs from the API server, and what its answers mean.

No clock, network, randomness or asyncio: instants and answers come in as arguments, requests go out
as values. `answers` is the table of meanings, `admission` says which decisions may be carried out
at all, `attempt` is what every decision goes through, `machine` the protocol of one that binds and
`removal` of one that removes, `commands` what they ask for, `outcome` puts the result into the
message that the planner reads.
"""
