"""Schedules and plans in the engines that people run: one file for each, its package imported only when it is used."""
