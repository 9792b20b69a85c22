"""What was found as a diagnosis: cause, evidence, what fits as well, what to do.

`diagnosis` is the record. `phrasing` says what made a tensor, with `match_words` of norms and `map_words` of
maps (singular values among them); `request_phrasing` what it has otherwise than was asked for, by
`request_difference`, and `agreement` what one that agrees shows all the same. `suggestion` is the input that
tells more.
"""
