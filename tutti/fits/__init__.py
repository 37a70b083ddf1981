"""`tutti fits -f FILE`: whether these gangs would fit now, on which nodes, or what they lack.

Nothing is created. `shared.admission.judgement` makes the questions, here or in the API service,
and the standby planner answers them.
"""
