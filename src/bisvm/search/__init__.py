"""The search: starts, stages, the choice of the kernel, and checks of the result.

It takes `Settings` and `Data`, asks an `Observer` for evaluations, and returns values;
it never sees an estimator. It may import `bilevel`, `optimizers` and all that these may
import.

| file | what it holds |
| --- | --- |
| `units` | `search`, the entry point: units of work, in parallel |
| `settings` | the input: settings, data, the bilevel problem they define |
| `kernel_choice` | kernel="auto": candidate kernels, from simple to rich |
| `task_choice` | multi_class="auto": a machine for every class, or for every pair |
| `default_machine` | a default SVC or SVR, the fallback of a time limit |
| `calibration` | probabilities from held-out decision values |
| `stages` | `tune`, the order of stages of one search |
| `subsamples` | samples of the rows, and the step from one to a larger one |
| `baselines` | simple rules to compare with, and which of two results is better |
| `starts` | values of theta to start from |
| `descent` | one evaluation, one descent, in shared or separate coordinates |
| `refinement` | from shared to separate values, checked by nested cross-validation |
| `promises` | a quick check whether separate values are worth their search |
| `results` | the final machine, held-out decision values, the certificate |
| `reasons` | why a search ended, and what to do about it |
| `history` | records of evaluations, and comparisons of held-out losses |
| `observer` | records, callback and time limit of a search; `progress` shows it |
| `checkpoint` | a file of evaluations to resume a fit; `packing` writes values |

A new stage of the search goes into `stages`, a new candidate kernel into
`kernel_choice`.
"""
