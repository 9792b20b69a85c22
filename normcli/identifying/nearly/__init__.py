"""What explains a tensor but for some values, or for some groups of a large one.

* `nearest`: the norm that explains most values
* `trimmed_estimate`: a gamma that nobody gave, fitted to most values
* `strange_groups`: the groups that a hypothesis leaves unexplained
* `confirmation`: what a sample showed, held against all values
"""
