"""Connects trainers to a farm, one module for each trainer; see docs/trainers.md. This import loads no trainer."""
