"""The lightest path through a cost matrix for every number of steps at once."""

import numpy as np
from jaxtyping import Float, Int


def lightest_paths(
    cost: Float[np.ndarray, "n n"], steps: int
) -> tuple[Float[np.ndarray, " steps"], Int[np.ndarray, "steps n"]]:
    """Dynamic programming over V_k(j) = min_{i<j} V_{k-1}(i) + cost(i, j), from node 0 to node n-1.

    Returns the weight of the lightest path with exactly 1 … `steps` edges and the table of predecessors that
    `path_nodes` reads. Only the upper triangle of `cost` is used.
    """
    n = len(cost)
    into = np.where(np.tri(n, k=-1, dtype=bool), cost.T, np.inf)  # into[j, i]: cost of the edge i → j
    value = np.full(n, np.inf)
    value[0] = 0.0
    weights = np.empty(steps)
    previous = np.zeros((steps, n), dtype=np.int32)
    for k in range(steps):
        through = into + value
        previous[k] = through.argmin(1)
        value = np.take_along_axis(through, previous[k][:, None], 1)[:, 0]
        weights[k] = value[-1]
    return weights, previous


def path_nodes(previous: Int[np.ndarray, "steps n"], steps: int) -> Int[np.ndarray, " nodes"]:
    """The nodes 0 … n-1 of the lightest path with exactly `steps` edges."""
    nodes = [previous.shape[1] - 1]
    for k in range(steps - 1, -1, -1):
        nodes.append(int(previous[k, nodes[-1]]))
    return np.array(nodes[::-1])
