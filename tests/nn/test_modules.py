"""Modules by name, and the layout of features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wisecrowd.classifiers.standardiser import Standardiser
from wisecrowd.errors import InputError, UsageError
from wisecrowd.nn.modules import (
    arrange_inputs,
    build_module,
    compute_input_shape,
    explain_shape_errors,
    prepare_inputs,
)

torch = pytest.importorskip("torch")


class TestBuild:
    @pytest.mark.parametrize(
        ("name", "shape"), [("linear", (5,)), ("mlp", (5,)), ("cnn", (1, 3, 3)), ("cnn", (3, 32, 20))]
    )
    def test_every_name_gives_a_logit_for_every_class(self, name: str, shape: tuple[int, ...]) -> None:
        module = build_module(name, shape, 4, hidden=6, dropout=0.5).eval()
        assert module(torch.zeros(2, *shape)).shape == (2, 4)

    def test_a_linear_module_begins_undecided(self) -> None:
        assert build_module("linear", (3,), 2, 1, 0.0)(torch.ones(1, 3)).tolist() == [[0, 0]]

    def test_a_module_is_copied_and_its_weights_drawn_again_unless_frozen(self) -> None:
        given = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
        for parameter in given[0].parameters():
            parameter.requires_grad = False
        built = build_module(given, (2,), 2, 1, 0.0)
        assert built is not given
        assert torch.equal(built[0].weight, given[0].weight)
        assert not torch.equal(built[1].weight, given[1].weight)

    def test_a_function_may_return_the_same_module_every_time(self) -> None:
        module = torch.nn.Linear(3, 2)
        shapes = []
        build = build_module(lambda shape, n_classes: shapes.append((shape, n_classes)) or module, (3,), 2, 1, 0.0)
        assert build is not module
        assert shapes == [((3,), 2)]

    @pytest.mark.parametrize(
        ("classifier", "message"),
        [
            ("resnet", "unknown network 'resnet'"),
            (7, "unknown network 7"),
            (lambda *_: 7, "must return a torch module; it returned 7"),
        ],
    )
    def test_other_classifiers_are_refused(self, classifier: Any, message: str) -> None:
        with pytest.raises(UsageError, match=message):
            build_module(classifier, (3,), 2, 1, 0.0)


class TestLayout:
    IMAGE = np.arange(2 * 5 * 6 * 3.0).reshape(2, 5, 6, 3)

    def test_images_have_channels_first(self) -> None:
        arranged = arrange_inputs(self.IMAGE, "cnn")
        assert arranged.shape == (2, 3, 5, 6)
        assert (arranged[:, 1] == self.IMAGE[..., 1]).all()
        assert arrange_inputs(np.zeros((2, 3, 5, 6)), "cnn").shape == (2, 3, 5, 6)
        assert arrange_inputs(np.zeros((2, 5, 6)), "cnn").shape == (2, 1, 5, 6)

    def test_rows_are_flat_and_others_stay(self) -> None:
        assert arrange_inputs(self.IMAGE, "mlp").shape == (2, 90)
        assert arrange_inputs(np.zeros((0, 5, 6)), "linear").shape == (0, 30)
        assert arrange_inputs(self.IMAGE, torch.nn.Identity()) is self.IMAGE
        assert compute_input_shape([5, 6, 3], "cnn") == (3, 5, 6)

    @pytest.mark.parametrize("shape", [(2, 4), (2, 1, 2, 3, 4)])
    def test_what_is_no_image_is_refused(self, shape: tuple[int, ...]) -> None:
        with pytest.raises(InputError, match="the classifier 'cnn' needs images"):
            arrange_inputs(np.zeros(shape), "cnn")


class TestPreparation:
    def test_features_are_standardised_by_training(self) -> None:
        standardiser = Standardiser()
        train = np.array([[1.0, 5.0], [3.0, 5.0]])
        assert prepare_inputs(train, "mlp", standardiser, fit=True).tolist() == [[-1, 0], [1, 0]]
        assert prepare_inputs([[5.0, 5.0]], "mlp", standardiser).tolist() == [[3, 0]]
        assert prepare_inputs(train, "mlp", None).tolist() == train.tolist()

    def test_channels_of_images_are_standardised_together(self) -> None:
        rng = np.random.default_rng(0)
        images = rng.normal([0, 5, 50], [1, 2, 10], (40, 5, 5, 3))
        prepared = prepare_inputs(images, "cnn", Standardiser(), fit=True)
        assert prepared.shape == (40, 3, 5, 5)
        np.testing.assert_allclose(prepared.mean(axis=(0, 2, 3)), 0, atol=1e-9)
        np.testing.assert_allclose(prepared.std(axis=(0, 2, 3)), 1)


def test_errors_of_torch_name_the_shape() -> None:
    layer = torch.nn.Linear(4, 2)
    with (
        pytest.raises(UsageError, match=r"the network cannot process rows of shape \(3,\)") as caught,
        explain_shape_errors((3,)),
    ):
        layer(torch.zeros(1, 3))
    assert "\n" not in str(caught.value)
