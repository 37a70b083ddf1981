"""`tutti bundle`: the data of a bug report in one file, without secrets.

`collection` asks the services, NATS, this machine's data folder and the API server, `archive` packs
the files and lists them, `command` reads the flags.
"""
