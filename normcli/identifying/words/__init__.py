"""The words of an answer: a diagnosis with cause, evidence, alternatives, remedy.

* `phrasing`: the diagnosis of an identification
* `match_words`: a norm in words
* `map_words`: a map in words, with running statistics and singular values
* `request_phrasing`: the diagnosis of a tensor that differs from the requested norm
* `request_difference`: the options in which a match differs from the request
* `agreement`: findings on a tensor that agrees with the norm
* `suggestion`: the input for which candidates differ most; whether the two tensors were exchanged
"""
