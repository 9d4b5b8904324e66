"""In which order the gallery shows the examples: what most people need comes first."""

PLACES = [
    "plot_moons.py",
    "plot_landscape.py",
    "plot_unbalanced.py",
    "callback.py",
    "signals.py",
    "multiple_kernels.py",
    "own_kernel.py",
    "own_optimizer.py",
    "resume.py",
    "mlflow_logging.py",
    "cluster.py",
]


class ByPlace:
    """Sort key of sphinx-gallery; an example without a place comes last."""

    def __init__(self, src_dir):
        pass

    def __call__(self, name):
        return (PLACES.index(name) if name in PLACES else len(PLACES), name)
