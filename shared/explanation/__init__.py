"""How Tutti understands manifests: which gangs they declare, and what is missing for them. Pure.

`understanding` reads each object as watcher, webhook and controllers do, `gangs` collects the gangs
of all objects. `tutti explain-dialect` prints the report, and the API service answers with it.
"""
