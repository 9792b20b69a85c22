"""Answers on many batches, or on layers that were folded into others.

* `fitted_statistics`: `normcli fit` and `normcli merge`: statistics over files
* `running_statistics`: `normcli NORM --state`: how running statistics moved
* `folding`: `normcli fold`: the folded layer, those of a state dict, or weights with the σ of each
* `simulations`: `normcli simulate`: how one sample moves with its batch, or step after step
"""
