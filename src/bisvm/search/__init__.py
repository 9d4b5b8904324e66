"""The search: where to start, how far to climb, which kernel, and what to believe.

It gets `Settings` and `Data`, asks an `Observer` for evaluations, and returns values;
it never sees an estimator. It may import `bilevel`, `optimizers` and all that these may
import. A new stage of the search goes into `stages`, a new candidate kernel into
`kernel_choice`.
"""
