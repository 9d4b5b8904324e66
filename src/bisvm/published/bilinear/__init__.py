"""The linear convolutional SVM: bilinear in its maps and its filters.

May import what `published` may import. Each row of the table below is a file; a new way
to train one half is a `HalfStep` in `steps.py`.

    min over w, b, f   lambda_w/2 |w|^2 + lambda_f/2 |f|^2
                       + (1/N) sum_i loss(y_i (sum_k w_k'(x_i * f_k) + b))

| file | what |
| --- | --- |
| `patches` | convolution as products with small matrices |
| `problem` | E, its derivatives, and what is true of its minima |
| `steps` | linear SVMs for one half: Newton, Pegasos, LIBLINEAR |
| `joint` | Newton's method on both halves, and derivatives by the strengths |
| `training` | maps and filters in turn, and joint steps |
| `strengths` | the upper level: a validation loss of the strengths, and its search |

Reference: B. Sugg, Convolutional Support Vector Machines for Image Classification,
2018, chapter 3.
"""
