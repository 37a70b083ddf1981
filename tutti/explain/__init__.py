"""`tutti explain-dialect -f FILE`: how Tutti understands manifests.

`understanding` reads each object as watcher, webhook and controllers do, `gangs` collects the gangs
of all objects, `view` prints both. Nothing is sent anywhere.
"""
