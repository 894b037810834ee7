"""The package that verifiers and prime-rl load by ``taskset.id = "swefarm_env"``, since they find a plugin only by a name without dots."""

from swefarm.trainers.verifiers import FarmEnv, FarmTaskset

__all__ = ["FarmEnv", "FarmTaskset"]
