"""A norm's exact result, stored in few bits: scales by a format's rule, and codes.

* `codes`: numbers rounded once onto a format's grid
* `costs`: what each format costs on some data
* `formats`: the table of formats, a row for each
* `quantize`: a norm's result as scales and codes
* `scales`: one scale for each group of values
"""
