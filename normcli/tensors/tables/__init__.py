"""Tables: rows of cells in named columns, some of which are numbers.

* `arrow`: large delimited files, faster
* `column_choice`: the columns that are worked on
* `delimited`: CSV and its relatives, read
* `delimited_writing`: CSV and its relatives, written
* `json_records`: JSON records and JSON Lines
* `line_records`: the lines of a delimited file, or several of a quoted cell
* `numerals`: notations of numbers and of missing values in cells
* `parquet`: Parquet files, read
* `parquet_writing`: Parquet files, written
* `tables`: columns that are numbers, and others that are written again unchanged
* `text_columns`: columns that are not plain numbers: read in another notation, refused, or doubted
"""
