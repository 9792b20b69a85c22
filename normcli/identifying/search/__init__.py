"""Which norms reproduce a tensor: ways of grouping, centring and dividing, tried on few values first.

`groups` enumerates the ways, `affine` how gamma and beta entered, `samples` takes and standardizes values,
`screen` refutes most ways by lines. A `hypothesis` that holds is a `match`, with the `names` that it
has. `estimate` fits a gamma that nobody gave. `search` tries all, windows and matrices among them.
"""
