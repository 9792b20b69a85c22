"""Tables: rows of cells in named columns, some of which are numbers.

* `arrow`: large delimited files, faster
* `cells`: texts as numbers
* `column_choice`: which columns are worked on
* `column_names`: names of columns, matched and listed
* `delimited`: CSV and its relatives, read
* `delimited_writing`: CSV and its relatives, written
* `json_records`: JSON records and JSON Lines
* `line_records`: the lines of a delimited file, or several of a quoted cell
* `numerals`: how cells write numbers, and what is missing
* `parquet`: Parquet files, read
* `parquet_writing`: Parquet files, written
* `rows`: rows on their way into a file
* `tables`: columns that are numbers, and others that pass through
* `text_columns`: columns that are no plain numbers: read otherwise, refused, doubted
"""
