"""Programs that measure Tutti, and its rivals, against the bind limit of a real API server."""
