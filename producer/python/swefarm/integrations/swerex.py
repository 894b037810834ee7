"""
A deployment and a runtime of SWE-ReX 1.x over a sandbox of the farm, so that SWE-agent 1.1 works in it:
``SWEEnv(deployment=SwefarmDeployment(instance_id=…), repo=PreExistingRepoConfig(repo_name="testbed", reset=False), …)``.
"""

from __future__ import annotations

import shlex
from typing import Any, Optional

from swerex.deployment.abstract import AbstractDeployment
from swerex.deployment.hooks.abstract import CombinedDeploymentHook, DeploymentHook
from swerex.exceptions import (
    BashIncorrectSyntaxError,
    CommandTimeoutError,
    DeploymentNotStartedError,
    NonZeroExitCodeError,
    SessionDoesNotExistError,
    SessionExistsError,
)
from swerex.runtime.abstract import (
    AbstractRuntime,
    Action,
    BashAction,
    BashObservation,
    CloseBashSessionResponse,
    CloseResponse,
    CloseSessionRequest,
    Command,
    CommandResponse,
    CreateBashSessionResponse,
    CreateSessionRequest,
    IsAliveResponse,
    ReadFileRequest,
    ReadFileResponse,
    UploadRequest,
    UploadResponse,
    WriteFileRequest,
    WriteFileResponse,
)
from swerex.utils.log import get_logger

from swefarm.farm import in_thread
from swefarm.output import Output, Verdict
from swefarm.sandbox import Sandbox
from swefarm.shell import Shell


class SwefarmRuntime(AbstractRuntime):
    """Sessions are :class:`swefarm.Shell`. No process runs between commands, so there are no interactive programs to interrupt."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.logger = get_logger("rex-swefarm")
        self.sandbox = sandbox
        self._shells: dict[str, Shell] = {}

    async def is_alive(self, *, timeout: Optional[float] = None) -> IsAliveResponse:
        return IsAliveResponse(is_alive=True)

    async def create_session(self, request: CreateSessionRequest) -> CreateBashSessionResponse:
        if request.session in self._shells:
            raise SessionExistsError(f"session {request.session} already exists")
        shell = Shell(self.sandbox, cwd="/")
        sources = " && ".join(f"source {path}" for path in request.startup_source) or ":"
        started = await in_thread(lambda: shell.run(sources))
        self._shells[request.session] = shell
        return CreateBashSessionResponse(output=started.text)

    async def run_in_session(self, action: Action) -> BashObservation:
        shell = self._shells.get(action.session)
        if shell is None:
            raise SessionDoesNotExistError(f"session {action.session!r} does not exist")
        if not isinstance(action, BashAction):
            return BashObservation(output="", exit_code=0)
        done = await in_thread(lambda: shell.run(action.command, action.timeout))
        if done.exit_code is None:
            raise CommandTimeoutError(f"timeout after {action.timeout} seconds while running command {action.command!r}: {done.note}")
        output = done.text.replace("\r\n", "\n")
        if done.exit_code != 0 and "syntax error" in output:
            await self._check_syntax(action.command)
        if action.check == "raise" and done.exit_code != 0:
            message = f"Command {action.command!r} failed with exit code {done.exit_code}. Here is the output:\n{output!r}"
            raise NonZeroExitCodeError(f"{action.error_msg}: {message}" if action.error_msg else message)
        return BashObservation(output=output, exit_code=None if action.check == "ignore" else done.exit_code)

    async def _check_syntax(self, command: str) -> None:
        checked = await in_thread(lambda: self.sandbox.run(f"bash -n -c {shlex.quote(command)}"))
        if checked.exit_code != 0:
            info = {"bash_stdout": "", "bash_stderr": checked.text}
            raise BashIncorrectSyntaxError(f"Error (exit code {checked.exit_code}) while checking bash command", extra_info=info)

    async def close_session(self, request: CloseSessionRequest) -> CloseBashSessionResponse:
        if self._shells.pop(request.session, None) is None:
            raise SessionDoesNotExistError(f"session {request.session!r} does not exist")
        return CloseBashSessionResponse()

    async def execute(self, command: Command) -> CommandResponse:
        """Runs a command without a session. The sandbox does not separate stderr, so ``stdout`` has both."""
        given = command.command
        line = given if command.shell and isinstance(given, str) else shlex.join([given] if isinstance(given, str) else given)

        def run() -> Output:
            return self.sandbox.run(line, cwd=command.cwd or "/", env=command.env, timeout_s=command.timeout)

        done = await in_thread(run)
        if done.exit_code is None:
            raise CommandTimeoutError(f"Timeout ({command.timeout}s) exceeded while running command: {done.note}")
        if command.check and done.exit_code != 0:
            message = f"Command {given!r} failed with exit code {done.exit_code}. Stdout:\n{done.text!r}"
            raise NonZeroExitCodeError(f"{command.error_msg}: {message}" if command.error_msg else message)
        return CommandResponse(stdout=done.text, exit_code=done.exit_code)

    async def read_file(self, request: ReadFileRequest) -> ReadFileResponse:
        content = await in_thread(lambda: self.sandbox.read(request.path))
        return ReadFileResponse(content=content.decode(request.encoding or "utf-8", request.errors or "strict"))

    async def write_file(self, request: WriteFileRequest) -> WriteFileResponse:
        await in_thread(lambda: self.sandbox.write(request.path, request.content))
        return WriteFileResponse()

    async def upload(self, request: UploadRequest) -> UploadResponse:
        await in_thread(lambda: self.sandbox.upload(request.source_path, request.target_path))
        return UploadResponse()

    async def close(self) -> CloseResponse:
        self._shells.clear()
        return CloseResponse()


class SwefarmDeployment(AbstractDeployment):
    """
    ``options`` are passed to :meth:`swefarm.Sandbox.open`. Stopping closes the sandbox without a verdict, unless :meth:`submit` was
    called.
    """

    def __init__(self, **options: Any) -> None:
        self.logger = get_logger("rex-deploy")
        self._options = options
        self._hooks = CombinedDeploymentHook()
        self._runtime: Optional[SwefarmRuntime] = None

    def add_hook(self, hook: DeploymentHook) -> None:
        self._hooks.add_hook(hook)

    async def is_alive(self, *, timeout: Optional[float] = None) -> IsAliveResponse:
        return await self.runtime.is_alive(timeout=timeout)

    async def start(self) -> None:
        self._hooks.on_custom_step("Starting sandbox")
        sandbox = await in_thread(lambda: Sandbox.open(**self._options))
        self._runtime = SwefarmRuntime(sandbox)

    async def stop(self) -> None:
        runtime, self._runtime = self._runtime, None
        if runtime is not None:
            await in_thread(runtime.sandbox.close)

    async def submit(self, wait_s: float = 7200.0) -> Verdict:
        """Submits the tree of the sandbox and waits for the verdict."""
        sandbox = self.runtime.sandbox
        return await in_thread(lambda: sandbox.submit(wait_s))

    @property
    def runtime(self) -> SwefarmRuntime:
        if self._runtime is None:
            raise DeploymentNotStartedError()
        return self._runtime
