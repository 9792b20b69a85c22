"""Running statistics: averaged in training, kept in a file, folded into a layer.

* `average`: running mean and variance updated by batches: momentum, ddof, the frameworks' rules
* `checkpoint_fold`: finds the layer before each batch norm of a state dict, and folds all of them
* `fold`: one batch norm folded into the convolution or linear layer before it, and a proof by a random batch
* `matrix_fold`: spectral norm (u, v, σ) folded into a weight, alone or in a state dict of torch's
* `state_file`: the state file (`--state`, an `.npz`): read, locked, replaced
"""
