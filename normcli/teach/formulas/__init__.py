"""The formulas of a norm as trees: written in any notation, evaluated exactly, differentiated.

* `expression`: the trees: numbers, names, operations; their exact value
* `printer`: a tree as text, in any notation
* `definitions`: the formulas of each norm, each with a name for its result
* `derivative`: the rules of calculus, one for each operation
* `chain_rule`: the exact numbers of a group in the formulas, and the derivatives of the loss by each name
* `long_sums`: sums over long groups, in pairs of doubles
"""
