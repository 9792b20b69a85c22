"""Definitions of norms: the table, its options, conventions, layouts, and a norm resolved against a shape.

* `table`: `NORMS`: the centre, divisor and reduced axes of each norm; to add one, add a row
* `norm`: the record of a norm, and what follows from its row
* `divisors`: the divisors of norms: statistics, words, promised results
* `rules`: the words that the tables may use, and names as types, for editors and mypy
* `option_kinds`: the record of an option, and its values as texts
* `options`: `OPTIONS`: every option of norms, and its values
* `conventions`: the choices of each framework: `conventions.toml`
* `calls`: the functions and layers of each framework: `calls.toml`
* `request`: a caller's options as one record, or in one word: `gn:groups=4`
* `plan`: a request resolved against a shape and dtype
* `spec`: the numeric options of a plan: eps of a dtype, windows, iterations
* `layout`: the names of axes
* `grid`: the groups of a shape: their numbers, indices and names
* `axes`: the axes that are reduced, and the shapes of gamma and beta
"""
