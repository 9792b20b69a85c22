"""Answers that show one result, and the tables of `normcli norms` and `normcli conventions`.

* `calculation`: `normcli NORM`: statistics, normalized values, warnings
* `grouped_rows`: `normcli NORM --by`: the statistics of each group of rows
* `gradients`: `normcli backward`: dx, dgamma, dbeta
* `drawing`: `normcli draw`: the picture, or coloured matrices in a terminal
* `quantization`: `normcli NORM --quantize`: scales and codes beside what they lose
* `catalogue`: `normcli norms` and `normcli conventions`
"""
