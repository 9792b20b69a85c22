"""Answers on many batches, or on layers that were folded into others.

* `fitted_statistics`: `normcli fit` and `normcli merge`: statistics over files
* `running_statistics`: `normcli NORM --state`: how running statistics moved
* `folded_layer`: `normcli fold`: the folded layer, or those of a state dict, and how far the output moved
* `folded_matrices`: `normcli fold sn`: the weights, and the σ of each
* `simulations`: `normcli simulate`: how one sample moves with its batch, or step after step
"""
