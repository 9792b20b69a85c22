"""Answers that show one result, and the tables of `normcli norms` and `normcli conventions`.

* `calculation`: `normcli NORM`: statistics, normalized values, warnings
* `grouped_rows`: `normcli NORM --by`: the statistics of each group of rows
* `gradients`: `normcli backward`: dx, dgamma, dbeta
* `drawing`: `normcli draw`: the picture, or coloured matrices in a terminal
* `sigma_estimate`: the line of `sn` on how far an estimated σ is from the largest singular value
* `catalogue`: `normcli norms` and `normcli conventions`
"""
