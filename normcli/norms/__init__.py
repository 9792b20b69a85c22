"""What a norm is: the table, its options, conventions, layouts, and a row resolved against a shape.

* `table`: `NORMS`: what each norm centres by, divides by and reduces; to add one, add a row
* `norm`: the record of a norm, and what follows from its row
* `divisors`: what norms divide by: statistics, words, promises
* `rules`: the words that the tables may use, and names as types, for editors and mypy
* `option_kinds`: the record of an option, and its values as texts
* `options`: `OPTIONS`: every choice of a norm, and its values
* `conventions`: what each framework does: `conventions.toml`
* `calls`: how each framework is called: `calls.toml`
* `request`: what a caller asks for, as a record or in one word: `gn:groups=4`
* `plan`: a request resolved against a shape and dtype
* `spec`: its numbers: eps of a dtype, windows, iterations
* `layout`: the letters of axes
* `grid`: groups of a shape: their numbers, indices and names
* `axes`: the axes that are reduced, and the shapes of gamma and beta
"""
