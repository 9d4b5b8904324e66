"""Several classes and probabilities, on the sets of Fernandez-Delgado et al. (2014)."""
