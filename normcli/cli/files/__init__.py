"""Files that a command line names.

* `choose_destination`: the destination that `--output` names, checked before any work
* `destination`: a file or standard output to write to
* `outputs`: the destinations of the normalized tensor, its statistics and the answer
* `sources`: tensors and parameters, from a file, JSON in place or a recipe
"""
