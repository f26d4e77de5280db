"""Classifiers for the parameter ``classifier`` of learners."""

from __future__ import annotations

from typing import Any

from wisecrowd.classifiers.logistic import Logistic
from wisecrowd.classifiers.sklearn_classifier import SklearnClassifier, check_probabilities
from wisecrowd.classifiers.soft_classifier import SoftClassifier
from wisecrowd.errors import UsageError
from wisecrowd.nn.network_classifier import NetworkClassifier

# Texts of parameters that several learners share.
CLASSIFIER_HELP = (
    "Classifier: 'logistic', 'linear', 'mlp', 'cnn', a torch module, or a scikit-learn classifier or pipeline."
)
CLASSIFIER_L2_HELP = "Ridge penalty of the classifier; None chooses it by the number of features."

#: Ridge penalty of a network when none is given.
NETWORK_L2 = 1.0


def make_classifier(choice: Any, **settings: Any) -> SoftClassifier:
    """Return an unfitted classifier for soft targets.

    Parameters
    ----------
    choice : {"logistic", "linear", "mlp", "cnn"}, SoftClassifier, torch module, callable or scikit-learn classifier
        A callable takes the shape of the features and the number of classes and returns a torch module. A
        scikit-learn classifier or pipeline needs ``predict_proba``.
    **settings
        Settings of the classifier, such as ``l2`` and ``random_state``. Settings that it does not have are ignored.

    Returns
    -------
    SoftClassifier

    Raises
    ------
    UsageError
        If no classifier can be made from ``choice``.

    Examples
    --------
    >>> make_classifier("logistic", l2=3.0).l2
    3.0
    >>> make_classifier("perceptron")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: unknown classifier 'perceptron'; use "logistic", "linear", "mlp", "cnn", ...
    """
    if isinstance(choice, SoftClassifier):
        return choice.clone_unfitted()
    if choice == "logistic":
        return Logistic(l2=settings.get("l2"), max_iter=settings.get("max_iter", 200))
    if isinstance(choice, str) and choice not in ("linear", "mlp", "cnn"):
        raise UsageError(
            f'unknown classifier {choice!r}; use "logistic", "linear", "mlp", "cnn", a torch module, a function that '
            "returns one, or a scikit-learn classifier or pipeline with predict_proba"
        )
    if hasattr(choice, "fit") and not isinstance(choice, type):
        # A stack, or a pipeline, knows only after its fit whether it has probabilities.
        if not (hasattr(type(choice), "predict_proba") and hasattr(type(choice), "get_params")):
            check_probabilities(choice)
        return SklearnClassifier(choice, random_state=settings.get("random_state", 0))
    l2 = settings.get("l2")
    return NetworkClassifier(choice, **settings | {"l2": NETWORK_L2 if l2 is None else l2})
