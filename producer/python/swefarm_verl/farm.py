"""The HTTP client of the package ``swefarm``, under the name that it had before."""

from swefarm.farm import ANSWER_S, DEFAULT_URL, PATIENCE_S, Farm, FarmError, FarmRefusal, HoldExpired, in_thread

__all__ = ["ANSWER_S", "DEFAULT_URL", "PATIENCE_S", "Farm", "FarmError", "FarmRefusal", "HoldExpired", "in_thread"]
