"""The words of an answer: a diagnosis with cause, evidence, alternatives, remedy.

* `phrasing`: what made a tensor
* `match_words`: a norm in words
* `map_words`: a map in words, stored statistics and singular values among them
* `request_phrasing`: how y differs from the requested norm
* `request_difference`: the choices that a match makes otherwise than the request
* `agreement`: what a result that agrees shows all the same
* `suggestion`: the input that would tell more, or whether the two tensors were exchanged
"""
