"""The net: fits many small models and compares their answers with those on file.

Run it before and after a change of structure. Answers must stay the same, bit for bit
while the order of the arithmetic is the same, and to 1e-9 where it is not.

| file | what it holds |
| --- | --- |
| `library` | every name that is taken from bisvm: edit this one after a rename |
| `data` | small data sets, by name |
| `kinds` | ways to make a case: fit an estimator, evaluate an objective, ... |
| `cases/` | all cases, by name |
| `answers` | what is kept of a case, and the file |
| `compare` | how far two answers are apart, and what is said about it |
"""
