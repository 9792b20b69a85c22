"""The verbs of the command line, a file each.

* `batches`: many files or batches
* `calculating`: one tensor, its gradients, its picture, its code
* `judging`: somebody else's numbers
* `reference`: help, tables, completion
* `teaching`: a student's questions
"""
