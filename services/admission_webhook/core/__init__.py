"""The webhook's rules: pure functions of one operation and of the known reference objects.

`admission` answers a request by the rules of its kind. Each kind has a module that defines its
`rules.KindRules`; `kinds` lists them all. `configurations` registers the webhook by the same list,
and `fit_advice` builds the planner's question about a gang that is being created.
"""
