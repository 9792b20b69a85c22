"""Answers on many batches, or on layers that were folded into others.

* `fitted_statistics`: `normcli fit` and `normcli merge`: statistics over files
* `running_statistics`: `normcli NORM --state`: how running statistics moved
* `folded_layer`: `normcli fold`: the folded layer, and how far its output moved
* `folded_checkpoint`: `normcli fold --checkpoint`: which norms of a state dict went into which layers
* `folded_matrices`: `normcli fold sn`: the weights, and the σ of each
* `batch_size_effect`: `normcli simulate batch-size`: how one sample moves with its batch
* `training_steps`: `normcli simulate training`: one sample, step after step
* `simulation_parts`: the header, picture and page that both simulations share
"""
