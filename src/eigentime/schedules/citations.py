"""Whom to cite for which strategy."""

_IMPROVED = (
    "A. Foresti, M. Bounoua, G. Franzese, L. Ambrogioni, P. Michiardi: "
    "Improved Sampling Schedules for Discrete Diffusion Models (2026)."
)
_EIGENTIME = "eigentime (see CITATION.cff): optimal discrete schedules with a certificate in path KL."

CITATIONS = {
    "uniform": "Equal steps in time: the baseline of every published sampler.",
    "cosine": "H. Chang, H. Zhang, L. Jiang, C. Liu, W. T. Freeman: MaskGIT: Masked Generative Image "
    "Transformer (2022).",
    "fisher-rao": "Equal steps in Fisher-Rao distance of a token's law, α = sin²(πk/2K); see L. Zhang, S. Syed: The "
    "Cosine Schedule is Fisher-Rao-Optimal for Masked Discrete Diffusion Models (2025).",
    "eds": _IMPROVED,
    "wds": _IMPROVED,
    "eds-data": _IMPROVED + " In the data gauge of eigentime.",
    "wds-data": _IMPROVED + " In the data gauge of eigentime.",
    "jys": "Y.-H. Park, C.-H. Lai, S. Hayakawa, Y. Takida, Y. Mitsufuji: Jump Your Steps, Optimizing Sampling Schedule "
    "of Discrete Diffusion Models (2024).",
    "ods": _EIGENTIME,
    "sqrt-slope": _EIGENTIME,
}
