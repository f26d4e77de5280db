"""Learners: classifiers trained on the votes themselves. One file is one method."""
