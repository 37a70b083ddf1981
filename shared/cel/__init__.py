"""The Common Expression Language (CEL) as Kubernetes' device selectors use it.

`expressions` compiles a text into a function of its variables, `functions` has the functions,
`macros` and `optionals` what evaluates its arguments by need, `values` the types that Python lacks,
`device` the variable `device` and what was read of it. The parser is cel-python's; it is imported
with the first expression. Evaluation is pure and bounded.
"""
