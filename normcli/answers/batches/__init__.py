"""Answers on many batches, or on layers that were folded into others.

* `fitted_statistics`: `normcli fit` and `normcli merge`: statistics over files
* `running_statistics`: `normcli NORM --state`: the changes of running statistics
* `folding`: `normcli fold`: the folded layer, the folded layers of a state dict, or weights with their σ
* `simulations`: `normcli simulate`: the changes of one sample's output with its batch, or step after step
"""
