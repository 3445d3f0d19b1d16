"""Widgets that more than one screen may show. They get values down and post messages up."""
