"""Small random worlds and independent brute force, shared by tests."""

import numpy as np
from scipy.linalg import expm

import eigentime as et


def random_table(values, length, kernel="absorbing", noise=None, seed=0, concentration=0.5):
    p0 = np.random.default_rng(seed).dirichlet(np.full(values**length, concentration)).reshape((values,) * length)
    return et.Table(p0, et.Process(make_kernel(kernel, values), noise or et.LogLinear()))


def make_kernel(kernel, values):
    if kernel == "absorbing":
        return et.Absorbing(values + 1)
    if kernel == "uniform":
        return et.Uniform(values)
    if kernel == "mixture":
        return et.Mixture(values + 1, uniform=0.4)
    rng = np.random.default_rng(7)
    rates = rng.uniform(0.2, 1.0, (values, values))
    np.fill_diagonal(rates, 0.0)
    return et.RateMatrix(rates - np.diag(rates.sum(1)))


def single_generator(kernel):
    """Q of one token written down from its definition."""
    size = kernel.size
    if kernel.name == "absorbing":
        q = np.zeros((size, size))
        q[:, kernel.mask] = 1.0
    elif kernel.name == "uniform":
        q = np.full((size, size), 1 / size)
    else:
        q = kernel.rates.numpy().copy()
    np.fill_diagonal(q, 0.0)
    return q - np.diag(q.sum(1))


def states(size, length):
    return np.stack(np.meshgrid(*[np.arange(size)] * length, indexing="ij"), -1).reshape(-1, length)


def full_generator(kernel, length):
    """The generator of the whole sequence: one token jumps at a time."""
    q, size = single_generator(kernel), kernel.size
    total = np.zeros((size**length,) * 2)
    for i in range(length):
        total += np.kron(np.kron(np.eye(size**i), q), np.eye(size ** (length - 1 - i)))
    return total


def clean_law(model):
    """p_0 as a vector over all size^L states."""
    size, length = model.process.kernel.size, model.length
    law = np.zeros((size,) * length)
    values = model.process.kernel.values.numpy()
    law[np.ix_(*[values] * length)] = model.law.numpy().reshape((len(values),) * length)
    return law.ravel()


def noisy_law(model, t):
    sigma = model.process.noise.sigma(t).item()
    return clean_law(model) @ expm(sigma * full_generator(model.process.kernel, model.length))


def entropy(p):
    p = p[p > 0]
    return -(p * np.log(p)).sum()
