"""`tutti observe`: what a `tutti up --observe` has found beside another scheduler, as a table or as
JSON.

`command` asks the observer, or reads the file that it left; `summary` counts; `showing` prints.
"""
