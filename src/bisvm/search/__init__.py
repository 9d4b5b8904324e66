"""The search: where to start, in which stages, which kernel, and how far to trust it.

It takes `Settings` and `Data`, asks an `Observer` for evaluations, and returns values;
it never sees an estimator. It may import `bilevel`, `optimizers` and all that these may
import.

| file | what it holds |
| --- | --- |
| `units` | `search`, the entry point: units of work, in parallel |
| `settings` | what is asked: settings, data, the bilevel problem they make |
| `kernel_choice` | kernel="auto": candidate kernels, from simple to rich |
| `task_choice` | multi_class="auto": a machine for every class, or for every pair |
| `default_machine` | a default SVC or SVR, which a time limit leaves at worst |
| `calibration` | probabilities from held-out decision values |
| `stages` | `tune`, the order of stages of one search |
| `subsamples` | samples of the rows, and from one of them to a larger one |
| `baselines` | simple rules to compare with, and which of two answers is better |
| `starts` | where to start |
| `descent` | one evaluation, one descent, in shared or separate coordinates |
| `refinement` | from shared to separate values, checked by nested cross-validation |
| `promises` | whether separate values are worth it, on a sample or on one split |
| `results` | the final machine, held-out decision values, the certificate |
| `reasons` | why a search ended, and what to do about it |
| `history` | records of evaluations, and comparisons of held-out losses |
| `observer` | who watches: records, callback, time limit; `progress` shows it |
| `checkpoint` | evaluations on file, to resume a fit from; `packing` writes values |

A new stage of the search goes into `stages`, a new candidate kernel into
`kernel_choice`.
"""
