"""Common parts of the commands about Kubernetes objects: access, flags, errors, tables, output.

Objects stay as the API server sent them (`Object`): JSON and YAML print all of an object, and a
table reads the few fields that it shows, wherever they are missing.
"""
