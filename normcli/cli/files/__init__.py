"""Files that a command line names.

* `choose_destination`: `--output` and `--stats-output`: suffix, format and path, checked before any work
* `conflicting_files`: outputs that are also read, or that two options name, are refused
* `destination`: writing documents, tensors and arrays to a file, a store or standard output
* `outputs`: where the normalized tensor, its statistics and the answer of a norm go
* `sources`: tensors and parameters, from a file, JSON in place or a recipe
"""
