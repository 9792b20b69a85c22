"""Tables: rows of cells in named columns, some of which are numbers.

* `arrow`: pyarrow, for large delimited files
* `column_choice`: `--columns`, `--exclude`, `--by`: columns by name or number
* `delimited`: CSV and its relatives, read: header, delimiter, rows
* `delimited_writing`: CSV and its relatives, written
* `json_records`: JSON records and JSON Lines
* `line_records`: lines, cells, quotes and names of delimiters in delimited text
* `numerals`: notations of numbers and of missing values in cells
* `parquet`: Parquet files, read
* `parquet_writing`: Parquet files, written
* `table_options`: the options for reading tables
* `tables`: the interfaces of rows, a table with its chosen columns
* `text_columns`: columns of text: another decimal point, separators of thousands, identifiers
"""
