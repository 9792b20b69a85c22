"""Answers that show one result, and the tables of `normcli norms` and `normcli conventions`.

* `calculation`: `normcli NORM`: statistics, normalized values, the check of mean and variance, warnings
* `grouped_rows`: `normcli NORM --by COLUMN`: the statistics of each group of rows
* `gradients`: `normcli backward`: dx, dgamma, dbeta, dgate
* `drawing`: `normcli draw`: coloured matrices, a legend and histograms in a terminal
* `quantization`: `normcli NORM --quantize`: scales, codes and losses
* `catalogue`: `normcli norms` and `normcli conventions`: the two tables
"""
