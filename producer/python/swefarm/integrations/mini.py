"""
An ``Environment`` of mini-swe-agent 2.x whose commands run in a sandbox of the farm. In its YAML: ``environment: {environment_class:
swefarm.integrations.mini.SwefarmEnvironment, instance_id: …, url: …}``.
"""

from __future__ import annotations

from typing import Any, Optional, Union

from minisweagent.exceptions import Submitted
from minisweagent.utils.serialize import recursive_merge
from pydantic import BaseModel

from swefarm.output import Verdict
from swefarm.sandbox import Sandbox

SENTINEL = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


class SwefarmEnvironmentConfig(BaseModel):
    """``instance``, ``instance_id``, ``run_id``, ``url`` and ``settings`` are passed to :meth:`swefarm.Sandbox.open`."""

    instance: Union[dict[str, Any], str, None] = None
    instance_id: Optional[str] = None
    run_id: Optional[str] = None
    url: Optional[str] = None
    settings: dict[str, Any] = {}
    #: Folder of the commands; empty: the repository.
    cwd: str = ""
    env: dict[str, str] = {}
    timeout: int = 30


class SwefarmEnvironment:
    """
    Runs commands of mini in a sandbox of the farm. A submission ends only mini's loop. Call :meth:`submit` for the verdict. The caller may
    pass an open ``sandbox``.
    """

    def __init__(self, *, sandbox: Optional[Sandbox] = None, config_class: type = SwefarmEnvironmentConfig, **kwargs: Any) -> None:
        self.config = config_class(**kwargs)
        given = self.config
        self.sandbox = sandbox or Sandbox.open(
            given.instance, instance_id=given.instance_id, run_id=given.run_id, url=given.url, **given.settings
        )

    def execute(self, action: dict[str, Any], cwd: str = "", *, timeout: Optional[int] = None) -> dict[str, Any]:
        """
        Runs ``action["command"]``. Raises Submitted when the output begins with mini's marker of a submission. Does not catch
        errors of the farm.
        """
        command = action.get("command", "")
        limit = timeout or self.config.timeout
        done = self.sandbox.run(command, cwd=cwd or self.config.cwd or None, env=self.config.env, timeout_s=limit)
        output: dict[str, Any] = {"output": done.text, "returncode": done.exit_code, "exception_info": ""}
        if done.exit_code is None:
            why = f"Command timed out after {limit} seconds" if done.timed_out else f"The command was ended: {done.note}"
            output.update(returncode=-1, exception_info=f"An error occurred while executing the command: {why}")
            output["extra"] = {"exception_type": "TimeoutExpired" if done.timed_out else "Killed", "exception": why}
        self._check_finished(output)
        return output

    def _check_finished(self, output: dict[str, Any]) -> None:
        lines = output["output"].lstrip().splitlines(keepends=True)
        if output["returncode"] == 0 and lines and lines[0].strip() == SENTINEL:
            submission = "".join(lines[1:])
            extra = {"exit_status": "Submitted", "submission": submission}
            raise Submitted({"role": "exit", "content": submission, "extra": extra})

    def get_template_vars(self, **kwargs: Any) -> dict[str, Any]:
        """Returns the settings, and the system of the sandbox under the names of ``platform.uname()``."""
        if not hasattr(self, "_uname"):
            fields = self.sandbox.run("uname -s; uname -n; uname -r; uname -v; uname -m").text.splitlines()
            self._uname = dict(zip(("system", "node", "release", "version", "machine"), fields))
        cwd = self.config.cwd or self.sandbox.workdir
        return recursive_merge(self.config.model_dump(exclude={"instance"}), self._uname, {"cwd": cwd}, kwargs)

    def serialize(self) -> dict[str, Any]:
        """Returns the description of the environment for mini's trajectory."""
        return {
            "info": {
                "config": {
                    "environment": self.config.model_dump(mode="json", exclude={"instance"}),
                    "environment_type": f"{self.__class__.__module__}.{self.__class__.__name__}",
                },
                "swefarm": {"session_id": self.sandbox.session_id, "rollout_id": self.sandbox.rollout_id},
            }
        }

    def submit(self, wait_s: float = 7200.0) -> Verdict:
        """Submits the tree of the sandbox and waits for the verdict."""
        return self.sandbox.submit(wait_s)

    def cleanup(self) -> None:
        """Closes the sandbox without a verdict, unless it was submitted."""
        self.sandbox.close()
