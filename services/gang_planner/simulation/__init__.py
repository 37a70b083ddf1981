"""The planner's core under a virtual clock, on the jobs of a trace: the process behind
`tutti simulate`, which reads a plan from standard input (`shared.contracts.simulation`).
"""
