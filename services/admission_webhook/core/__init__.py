"""What the webhook decides beside the rules of `shared.admission`. Pure.

`configurations` registers the webhook by the list of kinds with rules, `opt_in` sets the scheduler
name of pods of namespaces that opted in, and `fit_advice` builds the planner's question about a
gang that is being created.
"""
