"""`tutti bundle`: what a bug report needs, in one file, without secrets.

`collecting` asks the services, NATS and this machine's data folder, `pods` the API server for logs,
`archive` packs and lists what is in it, `command` is what is typed.
"""
