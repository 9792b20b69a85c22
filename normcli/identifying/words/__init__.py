"""What was found as a diagnosis: cause, evidence, what fits as well, what to do.

`diagnosis` is the record. `phrasing` says what made a tensor, with `match_words` of norms and `map_words` of
maps; `request_phrasing` what it has otherwise than was asked for, by `request_difference`, `estimates`
(singular values), `casts` (roundings) and `closer_convention` (what a check that passes did not test).
`suggestion` is the input that tells more.
"""
