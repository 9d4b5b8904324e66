"""Parts (such as kernels and losses) and their parameters, theta as a vector with names
(`space`), threads, memory, deadlines, interrupts, compiled functions, optional
packages, files and progress lines.

Imports no other folder of the package. Add here only what several folders need and what
knows nothing of SVMs.
"""
