"""Quality of labels, probabilities and methods, with and without ground truth."""
