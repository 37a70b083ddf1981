"""What becomes of queues: opened and closed by Commands and by their parents, and described in
their status.
"""
