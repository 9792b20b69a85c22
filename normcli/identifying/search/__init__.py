"""The search for norms that reproduce a tensor: groupings, centres and divisors, tried on few values first.

* `groups`: the ways of grouping a shape, and hypotheses: a grouping, a centre, a divisor, and what they predict
* `affine_step`: the ways in which gamma and beta may have entered
* `samples`: values of some groups, standardized
* `screen`: whether y goes with x at all, and ways of grouping that lines through both refute
* `match`: a hypothesis that holds, and which match comes first
* `match_names`: the norms and frameworks that a hypothesis is
* `affine_fit`: a gamma and beta fitted to values
* `affine_estimate`: the hypotheses whose gamma and beta nobody gave
* `norm_search`: all hypotheses, windows and matrices among them
"""
