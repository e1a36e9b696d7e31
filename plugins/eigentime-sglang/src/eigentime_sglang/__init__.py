"""Plans and schedules of eigentime as a diffusion algorithm of SGLang: `--dllm-algorithm Eigentime`."""

TESTED = ("0.5.23",)


def register() -> None:
    """Add the algorithm to SGLang's; SGLang calls this in each of its processes (entry point `sglang.srt.plugins`)."""
    from sglang.srt.dllm.algorithm import algo_name_to_cls

    from eigentime.engines.tested import warn_untested
    from eigentime_sglang.algorithm import Eigentime

    warn_untested("sglang", TESTED)
    algo_name_to_cls[Eigentime.__name__] = Eigentime
