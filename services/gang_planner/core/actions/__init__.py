"""What a cycle tries, in the configured order, from least to most disruptive. Each file has one
`run(cycle)`.
"""
