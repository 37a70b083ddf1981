"""What the commands about Kubernetes objects share: access, flags, errors, tables and output.

Objects stay as the API server sent them (`Object`): JSON and YAML print all of an object, and a
table reads the few fields that it shows, wherever they are missing.
"""
