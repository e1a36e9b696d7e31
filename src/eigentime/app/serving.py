"""The server: this machine only, no sharing, nothing fetched from elsewhere."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eigentime.app.layout import gradio, layout, look
from eigentime.app.visit import named_models

HOST = "127.0.0.1"
WAITING, VISITORS = 16, 64
"""Clicks that may wait for the network at a time, and visitors whose work is kept."""
LARGEST_UPLOAD = 1024
"""Bytes: nothing is ever uploaded."""
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; frame-src 'self'; object-src 'none'"
)
"""What a browser may load: gradio's own files, and never another server's."""


class Guard:
    """Puts the policy on every answer."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"content-security-policy", POLICY.encode())]
            await send(message)

        await self.app(scope, receive, guarded)


def serve(
    folders: Sequence[str | Path] = (), port: int | None = None, *, wait: bool = True, open_browser: bool = False
) -> tuple[Any, str]:
    """Open the app to this machine; returns the running page and its address, at once where `wait` is False."""
    known = named_models(folders)
    gr = gradio()
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    files = tempfile.TemporaryDirectory(prefix="eigentime-app-")  # gone with the page
    os.environ["GRADIO_TEMP_DIR"] = files.name  # read while the page is laid out
    page = layout(known).queue(max_size=WAITING, api_open=False)
    page.files = files
    guards = [Middleware(Guard), Middleware(TrustedHostMiddleware, allowed_hosts=[HOST, "localhost"])]
    _, address, _ = page.launch(
        server_name=HOST,
        server_port=port,
        share=False,
        inbrowser=open_browser,
        prevent_thread_lock=True,
        quiet=True,
        footer_links=[],
        run_history=False,
        max_file_size=LARGEST_UPLOAD,
        state_session_capacity=VISITORS,
        enable_monitoring=False,
        ssr_mode=False,
        mcp_server=False,
        app_kwargs={"middleware": guards, "docs_url": None, "redoc_url": None},
        **look(gr),
    )
    if wait:
        print(f"The app is open at {address} for this machine only; stop it with Ctrl-C.", flush=True)
        page.block_thread()
    return page, address
