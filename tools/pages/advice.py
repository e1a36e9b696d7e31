"""When to use each thing, what it costs and whom to cite: what registries and docstrings do not say."""

from typing import NamedTuple


class Advice(NamedTuple):
    """Three short answers."""

    when: str
    cost: str
    cite: str = ""


CLOCK = "One measuring pass, which serves every number of steps; after it milliseconds."
FREE = "Nothing is measured."
STEP = "One evaluation per step."
ASKS = "As many evaluations as the posteriors make it take."
SCORES = "One evaluation per step, and a pass over the masked rows to score them."

STRATEGIES = {
    "uniform": Advice("As the baseline, or where nothing may be measured.", FREE),
    "cosine": Advice("Masked models for images, where nothing may be measured.", FREE),
    "fisher-rao": Advice("A default without measuring whose steps are equal in the law of one token.", FREE),
    "eds": Advice("To reproduce the paper; images did well with it.", CLOCK),
    "wds": Advice("To reproduce the paper; countdown did well with it.", CLOCK),
    "eds-data": Advice("EDS on masked models without counting the noise of masking itself.", CLOCK),
    "wds-data": Advice("WDS on masked models without counting the noise of masking itself.", CLOCK),
    "sqrt-slope": Advice("Hundreds of steps, where it nearly equals ODS and is smoother.", CLOCK),
    "ods": Advice("The usual choice of a time schedule: the smallest certified error for its number of steps.", CLOCK),
    "jys": Advice(
        "To compare with the published optimiser; powers of two only.",
        "A search that asks the network again for every number of steps.",
    ),
}
SAMPLERS = {
    "ancestral": Advice("The usual choice along schedules and plans. Its certificate is the tightest.", STEP),
    "counted": Advice("Masked models along a schedule: the same without the chance in how many are revealed.", STEP),
    "euler": Advice("To reproduce published runs that used it.", STEP, "A. Lou, C. Meng, S. Ermon: SEDD (2024)."),
    "tau-leaping": Advice(
        "To reproduce published runs; `ordinal` for values with an order, such as grey levels.",
        STEP,
        "A. Campbell et al.: A Continuous Time Framework for Discrete Denoising Models (2022).",
    ),
    "trapezoidal": Advice(
        "Kernels without a mask and many steps.",
        "Two evaluations per step.",
        "Y. Ren et al.: Fast Solvers for Discrete Diffusion Models (2025).",
    ),
    "predictor-corrector": Advice(
        "Kernels without a mask, where mistakes should be mended.",
        "One evaluation per step and one per corrector.",
        "A. Campbell et al.: A Continuous Time Framework for Discrete Denoising Models (2022).",
    ),
    "confidence": Advice("Language models as LLaDA samples them.", SCORES, "H. Chang et al.: MaskGIT (2022)."),
    "margin": Advice(
        "As confidence, where two values are often close.", SCORES, "J. Kim et al.: Train for the Worst (2025)."
    ),
    "entropy": Advice("As confidence, by the whole posterior; Dream's rule.", SCORES, "J. Ye et al.: Dream 7B (2025)."),
    "remasking": Advice(
        "Masked models with many steps, where mistakes should be mended. No certificate covers it.",
        STEP,
        "G. Wang et al.: Remasking Discrete Diffusion Models with Inference-Time Scaling (2025).",
    ),
    "entropy-bounded": Advice(
        "Text of uneven difficulty. The bound is in nats per step.",
        ASKS,
        "H. Ben-Hamu et al.: Accelerated Sampling from Masked Diffusion Models via Entropy Bounded Unmasking (2025).",
    ),
    "threshold": Advice("Language models as Fast-dLLM samples them.", ASKS, "C. Wu et al.: Fast-dLLM (2025)."),
    "klass": Advice("As threshold, waiting until a posterior has settled.", ASKS, "S. H. Kim et al.: KLASS (2025)."),
    "prefix": Advice("As threshold, with Fast-dLLM's factor.", ASKS, "C. Wu et al.: Fast-dLLM (2025)."),
    "order-bounded": Advice("Where a plan is good and difficulty uneven: a plan whose counts adapt.", ASKS),
    "apart": Advice("Where pairs of places were measured (`orders=['pairs']`).", ASKS, "M. Jeon et al.: DAPD (2026)."),
    "first-hitting": Advice(
        "Exact samples of a masked model, however long it takes.",
        "One evaluation per token.",
        "K. Zheng et al.: Masked Diffusion Models are Secretly Time-Agnostic Masked Models (2024).",
    ),
}
MEASURED_ORDER = "Nothing beyond measuring the order once."
ORDERS = {
    "random": Advice("As the baseline: it is what a time schedule does.", MEASURED_ORDER),
    "low-discrepancy": Advice("The first to try for sequences.", MEASURED_ORDER),
    "dilated": Advice("Sequences; deterministic within a round.", MEASURED_ORDER),
    "bisection": Advice(
        "Sequences whose neighbours decide, such as Markov chains, also with given tokens.", MEASURED_ORDER
    ),
    "raster": Advice("As the worst case, and for one token at a time from left to right.", MEASURED_ORDER),
    "halton": Advice("Images and other grids: measure with `shape=`.", MEASURED_ORDER),
    "sobol": Advice("As halton; sizes that are powers of two suit it best.", MEASURED_ORDER),
    "farthest": Advice(
        "Where dependence has a pattern that no grid names.", "The dependence by offset is measured once."
    ),
    "pairs": Advice(
        "Where places have no coordinates.",
        "The dependence of all pairs is measured once: as many evaluations as places.",
    ),
}
KERNELS = {
    "absorbing": Advice(
        "Masked diffusion: MDLM, SEDD absorb, LLaDA, Dream. Plans need it.",
        "The cheapest: only masked tokens are asked for.",
        "J. Austin et al.: D3PM (2021).",
    ),
    "uniform": Advice(
        "UDLM, Duo, SEDD uniform: every token can still change.",
        "Every token is asked for in every step.",
        "J. Austin et al.: D3PM (2021).",
    ),
    "rate-matrix": Advice(
        "Values with a geometry of their own, such as tauLDR's grey levels.",
        "As uniform, with one product by a matrix of values × values.",
        "A. Campbell et al. (2022).",
    ),
    "mixture": Advice(
        "GIDD: masks with some uniform noise, so that known tokens can be mended.",
        "As uniform.",
        "D. von Rütte et al.: Generalized Interpolating Discrete Diffusion (2025).",
    ),
}
NOISE = "Nothing: a schedule is found in α, and the curve only names its times."
NOISES = {
    "log-linear": Advice("What SEDD and MDLM were trained with.", NOISE),
    "geometric": Advice("The paper's binomial experiment, and SEDD's other choice.", NOISE),
    "cosine": Advice("MDLM's cosine configurations.", NOISE),
    "duo-cosine": Advice("Duo's cosine configurations.", NOISE),
    "linear": Advice("tauLDR's piano, whose rate is constant.", NOISE),
    "exponential": Advice("tauLDR's CIFAR-10.", NOISE),
}
