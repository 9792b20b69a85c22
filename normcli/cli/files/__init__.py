"""Files that a command line names: `sources` are read, `outputs` and a `destination` are written."""
