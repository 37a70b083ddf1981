"""Programs that measure Tutti, and its other schedulers, against the bind limit of a real API
server.
"""
