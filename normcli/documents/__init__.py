"""The content of answers before it is written in a format: tables, numbers, notation, excerpts, colours.

* `document`: `Document`, its sections (facts, tables, matrices, formulas), its page; values for JSON
* `plan_header`: the header of an answer, a plan as members of JSON, the table of each group's statistics
* `excerpt`: which rows and values of a long table or tensor are shown; a tensor with a row per value for CSV
* `matrix_blocks`: a tensor as matrices whose cells have the colours of their groups
* `number_format`: numbers as text: digits of statistics and cells, shapes, rounding up
* `notation`: a step of `explain` as an equation in plain text, LaTeX and code, with = or ≈
* `axes_words`: reduced and kept axes in words; notes on an assumed layout, and the option that changes it
* `translation`: the texts of a document in another language
* `bins`: histograms: bins, counts, ticks on the axis
* `scene`: a picture as a tree of shapes, before `normcli.pictures` writes it as SVG or PNG
* `palette`: the colours of groups
"""
