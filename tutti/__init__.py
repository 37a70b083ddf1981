"""What people type: the ``tutti`` command, and the embedded cluster behind ``tutti demo``."""
