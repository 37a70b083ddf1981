"""What the documents say of settings and metrics is what the code says of itself."""
