"""`tutti observe`: the findings of a `tutti up --observe`, as a table or as JSON.

`command` asks the observer, or reads its report file; `view` counts and prints.
"""
