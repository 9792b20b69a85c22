"""Definitions of norms: the table, its options, conventions, layouts, and a norm resolved against a shape.

* `table`: `NORMS`: a row for each norm: its centre, divisor and reduced axes
* `norm`: `Norm`: the record of a norm: names, formula, statistics, parameters
* `divisors`: `Divisor`: variance, length, range, quantiles, singular value: statistics and words
* `rules`: enumerations of axes, eps modes, zero rules; names of norms and frameworks as types
* `option_kinds`: `Option`: the kinds of options, and the parsing and checks of their values
* `options`: `OPTIONS`: a row for each option of norms
* `conventions`: the choices of each framework: `conventions.toml`
* `calls`: the functions and layers of each framework: `calls.toml`
* `request`: a caller's options as one record, or in one word: `gn:groups=4`
* `plan`: `Plan`: a request resolved against a shape and dtype; shapes of given gamma and beta
* `spec`: the numeric options of a plan: eps of a dtype, windows, iterations
* `layout`: letters and words for axes: the channel axis, the batch axis
* `grid`: the groups of a shape: their numbers, indices and names
* `axes`: the axes that are reduced, the split into groups, and the axes of gamma and beta
"""
