"""The search for norms that reproduce a tensor: groupings, centres and divisors, tried on few values first.

* `groups`: the ways of grouping a shape; a sample of groups, and a hypothesis on it
* `affine_step`: the ways in which gamma and beta may have entered
* `samples`: values of some groups, standardized
* `screen`: tests on few values: whether y depends on x, and whether values of a group lie on a line
* `match`: a hypothesis that reproduces y, and the order of matches
* `match_names`: the norms and frameworks that group and divide as a hypothesis does
* `affine_fit`: a gamma and beta fitted to values
* `affine_estimate`: hypotheses with a gamma and beta that were not given but fitted
* `norm_search`: all hypotheses, windows and matrices among them
"""
