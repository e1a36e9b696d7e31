"""How far samples are from data, where the law p of the data is known and a sampler's law q too.

Both directions count: KL(data ‖ q) is large where the sampler cannot make what data hold, KL(q ‖ data) where it makes
what data never hold, and only a sampler that is good in both is good.
"""

from jaxtyping import Float, Int
from torch import Tensor

from eigentime.tasks.law import DataLaw
from eigentime.tasks.metrics import Estimate, over_sequences


def from_data(law: DataLaw, data: Int[Tensor, "n length"], log_q: Float[Tensor, " n"]) -> Estimate:
    """KL(data ‖ q) = E_data[ln p - ln q] in nats, from data and ln q of each."""
    return over_sequences(law.log_likelihood(data) - log_q)


def from_samples(law: DataLaw, samples: Int[Tensor, "n length"], log_q: Float[Tensor, " n"]) -> Estimate:
    """KL(q ‖ data) = E_q[ln q - ln p] in nats, from samples and ln q of each."""
    return over_sequences(log_q - law.log_likelihood(samples))
