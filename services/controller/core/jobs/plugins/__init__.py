"""Job plugins: one file each, found by its name. To add one, add a file with a `build`."""
