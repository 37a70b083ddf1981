"""When finished Jobs have been kept long enough."""
