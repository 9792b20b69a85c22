"""The content of answers before it is written in a format: tables, numbers, notation, excerpts, colours.

* `document`: `Document`, its sections (facts, tables, matrices, formulas), its page; values for JSON
* `plan_header`: a plan as the header of an answer, and as members of JSON
* `excerpt`: which part of a large tensor is shown; a tensor as one line for each value
* `matrix_blocks`: a tensor as coloured matrices
* `number_format`: numbers as text: aligned, rounded, or exact
* `notation`: a step of a story as an equation: in plain text, LaTeX and code, with = or ≈
* `axes_words`: the axes of a plan in words, and which were assumed, with how to say otherwise
* `translation`: a document in another language
* `bins`: histograms before they are drawn: bins, counts, ticks
* `scene`: a picture as a tree of shapes, before `normcli.pictures` writes it as SVG or PNG
* `palette`: the colours of groups
"""
