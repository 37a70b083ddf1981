"""The command line: `tutti`, the programs of Volcano, and the embedded cluster of `tutti demo`."""
