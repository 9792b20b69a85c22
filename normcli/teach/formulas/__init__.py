"""The formulas of a norm as trees: written in any notation, evaluated exactly, differentiated.

* `expression`: the trees: numbers, names, operations; their exact value
* `printer`: a tree as text, in any notation
* `definitions`: the formulas of each norm, each with a name for its result
* `derivative`: the rules of calculus, one for each operation
* `chain_rule`: derivatives of the loss with respect to each name, from y back to x
* `exact_numbers`: the exact number of each name in the formulas, for one group
"""
