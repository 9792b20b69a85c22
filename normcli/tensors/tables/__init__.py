"""Tables: rows of cells in named columns, some of which are numbers.

`delimited` files (of `line_records`; `arrow` reads large ones), `parquet` and `json_records` become `tables` of
`rows` of `cells`, with `column_names` of which a `column_choice` is worked on.
"""
