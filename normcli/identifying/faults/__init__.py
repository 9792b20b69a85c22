"""What a kernel did wrong: the joints of a norm are opened one by one, and what it used is named.

`subjects` says which norms it may be, `open_case` opens a tensor as a `case` of it: what should be there,
and what y shows instead. A `variant` is what a kernel may have used; `tables` has the rows that yield them, and
`unknown` is what no row names. `opening` tries rows, on some values first; `places` says where one holds, and
what made NaN there. A `claim` is made of what was found, with its evidence in bits.
"""
