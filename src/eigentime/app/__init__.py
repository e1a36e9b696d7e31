"""The app: choose a model, measure it, watch two schedules generate at equal cost, take one home. What a visitor can do
is in `visit.py`, without gradio; `layout.py` puts it on a page; `serving.py` opens that page to this machine only."""

from eigentime.app.serving import serve
from eigentime.app.visit import Visit, named_models

__all__ = ["Visit", "named_models", "serve"]
