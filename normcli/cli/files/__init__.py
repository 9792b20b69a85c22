"""Files that a command line names.

* `choose_destination`: the destination that `--output` names, asked before any work whether it may be written
* `destination`: a file or standard output that is written
* `outputs`: the normalized tensor, its statistics and the answer, each to its destination
* `sources`: tensors and parameters, from a file, JSON in place or a recipe
"""
