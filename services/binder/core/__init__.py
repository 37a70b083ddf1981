"""The binder's pure core: which requests a decision needs, and what their answers mean.

No clock, network, randomness or asyncio: instants and answers are arguments, requests are returned
as values. `answers` is the table of meanings, `attempt` the part of the protocol that all decisions
share, `machine` the protocol of a decision that binds, `removal` and `eviction` those of decisions
that remove pods, `commands` what they ask of the shell, `claim_preparation` the writes that claims
need, `outcome` the message that the planner reads.
"""
