"""Verbs that look something up: help, tables, completion.

* `completion`: what a shell asks for at each TAB
* `help`: topics, and the help of a command
* `list_tables`: `norms` and `conventions`: the tables of both, and of symptoms
"""
