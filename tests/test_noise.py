import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import eigentime as et
from eigentime.process import noise_from_spec

CURVES = [
    et.LogLinear(),
    et.Geometric(0.01, 5),
    et.Geometric(),
    et.Cosine(),
    et.Cosine(power=2),
    et.DuoCosine(),
    et.DuoCosine(0.01),
    et.Linear(),
    et.Exponential(),
]


@pytest.mark.parametrize("noise", CURVES, ids=str)
@given(t=st.floats(0.001, 0.999))
def test_curves_invert_and_beta_is_the_slope_of_sigma(noise, t):
    assert noise.time_of_sigma(noise.sigma(t)).item() == pytest.approx(t, abs=1e-9)
    if noise.alpha(t).item() > 1e-12:
        assert noise.time_of_alpha(noise.alpha(t)).item() == pytest.approx(t, abs=1e-6)
    step = 1e-6
    slope = (noise.sigma(t + step) - noise.sigma(t - step)).item() / (2 * step)
    assert noise.beta(t).item() == pytest.approx(slope, rel=1e-4)


@pytest.mark.parametrize("noise", CURVES, ids=str)
def test_spec_rebuilds_the_curve(noise):
    assert noise_from_spec(noise.spec()) == noise


def test_against_the_official_implementations(fixture):
    arrays, config = fixture("noise_schedules")
    t = torch.from_numpy(arrays["in_t"]).double()
    geometric = config["sedd"]["geometric"]
    tauldr = config["tauldr"]
    for name, noise in {
        "sedd_loglinear": et.LogLinear(),
        "sedd_geometric": et.Geometric(**geometric),
        "mdlm_loglinear": et.LogLinear(),
        "mdlm_cosine": et.Cosine(),
        "mdlm_cosinesqr": et.Cosine(power=2),
        "mdlm_linear": et.Linear(**config["mdlm"]["linear"]),
        "tauldr_gaussian": et.Exponential(tauldr["time_base"], tauldr["time_exponential"]),
    }.items():
        expected = arrays[f"out_{name}_f64"]
        np.testing.assert_allclose(noise.sigma(t), expected[0], rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(noise.beta(t), expected[1], rtol=1e-6, atol=1e-12)

    for name, noise in {"duo_loglinear": et.LogLinear(), "duo_cosine": et.DuoCosine()}.items():
        alpha, slope, sigma = arrays[f"out_{name}_f64"]
        np.testing.assert_allclose(noise.alpha(t), alpha, rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(noise.sigma(t), sigma, rtol=1e-6, atol=1e-12)
        lost = 1 - noise.eps if name == "duo_cosine" else 1.0  # a factor that the code's own α implies and it forgets
        np.testing.assert_allclose(-noise.beta(t) * noise.alpha(t), lost * slope, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize(
    "make",
    [
        lambda: et.LogLinear(0.0),
        lambda: et.Geometric(2, 1),
        lambda: et.Linear(3, 3),
        lambda: et.Cosine(-1),
        lambda: et.DuoCosine(1.0),
        lambda: et.Exponential(-1, 3),
    ],
)
def test_bad_parameters_are_refused(make):
    with pytest.raises(et.EigentimeError, match=r"needs|must be"):
        make()
