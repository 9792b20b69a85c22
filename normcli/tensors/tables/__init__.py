"""Tables: rows of cells in named columns, some of which are numbers.

* `arrow`: large delimited files, faster
* `column_choice`: which columns are worked on, and their names
* `delimited_writing`: CSV and its relatives, written
* `delimited`: CSV and its relatives, read
* `json_records`: JSON records and JSON Lines
* `line_records`: the lines of a delimited file, or several of a quoted cell
* `numerals`: how cells write numbers, and what is missing
* `parquet_writing`: Parquet files, written
* `parquet`: Parquet files, read
* `tables`: columns that are numbers, and others that pass through
* `text_columns`: columns of text as numbers: read, refused, doubted
"""
