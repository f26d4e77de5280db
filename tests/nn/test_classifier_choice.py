"""Classifiers by the value of a parameter."""

from __future__ import annotations

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from wisecrowd.classifiers.logistic import Logistic
from wisecrowd.classifiers.sklearn_classifier import SklearnClassifier
from wisecrowd.errors import UsageError
from wisecrowd.nn.classifier_choice import NETWORK_L2, make_classifier
from wisecrowd.nn.network_classifier import NetworkClassifier


def test_every_choice_makes_its_classifier() -> None:
    assert isinstance(make_classifier("logistic"), Logistic)
    assert isinstance(make_classifier(LogisticRegression(), l2=3.0), SklearnClassifier)
    network = make_classifier("mlp", random_state=1)
    assert isinstance(network, NetworkClassifier)
    assert (network.choice, network.l2, network.random_state) == ("mlp", NETWORK_L2, 1)


def test_a_soft_classifier_is_cloned_without_its_fit() -> None:
    chosen = Logistic(l2=3.0)
    made = make_classifier(chosen)
    assert made is not chosen
    assert isinstance(made, Logistic)
    assert made.l2 == 3.0


def test_what_has_no_probabilities_is_refused() -> None:
    with pytest.raises(UsageError, match="LinearSVC has no predict_proba"):
        make_classifier(LinearSVC())
