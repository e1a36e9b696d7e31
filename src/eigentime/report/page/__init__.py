"""The report page: one HTML file that needs nothing else. Each section is one Python file, which turns what was
measured into plain data and words, and one script, which draws them. What comes from files is only ever text."""

from eigentime.report.page.material import Material, Scene
from eigentime.report.page.page import embedded, render
from eigentime.report.page.views import View, view_of

__all__ = ["Material", "Scene", "View", "embedded", "render", "view_of"]
