"""The bilevel problem: its data, H and its gradient by the adjoint, one evaluation.

May import `criteria`, `solvers` and what these may import. Add here only what every
search needs.
"""
