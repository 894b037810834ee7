"""verl drives a swefarm. See docs/verl.md. This import loads neither verl nor torch."""
