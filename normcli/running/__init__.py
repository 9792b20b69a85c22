"""Running statistics: averaged in training, kept in a file, folded into a layer.

* `average`: running averages of batch statistics
* `checkpoint_fold`: every batch normalization of a state dict, folded
* `fold`: a batch normalization, folded into the layer before it
* `matrix_fold`: a spectral normalization, folded into its weight
* `state_file`: the state file
"""
