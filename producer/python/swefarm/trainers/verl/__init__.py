"""Connects the trainer verl to a swefarm; see docs/verl.md. This import loads neither verl nor torch."""
