"""The planner's pure core: records and instants in, decisions, notes and verdicts out.

The door is `planner.Planner`. Below it, in the order in which a cycle runs through them: `picture`
applies records to the tables (`nodes`, `ground`, `shapes`, `gangs`, `queues`, `room`), `assessing`
says of each changed gang what it waits for, `actions` place gangs through a `statement` on a
`session`, `verdicts` say what became of each. No clock, no randomness, no I/O, no logging: the same
inputs give the same bytes.
"""
