"""Schedules and plans inside other people's engines: one file per engine, each imported only when used."""
