"""What the webhook answers, pure: a review and what is known of the cluster in, a verdict out.

`review` is the wire, `judge` the door, `kinds` the table of what is looked at, one file per kind
and verb (`validate_job`, `mutate_job`, …) the rules, `gangs` what the planner is asked, and
`configurations` what is registered with the API server, made from the same table.
"""
