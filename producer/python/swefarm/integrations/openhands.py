"""
A workspace of OpenHands SDK 1.x in a sandbox of the farm. The SDK's own tools work on this machine, so :func:`use_sandboxes` replaces them
by tools that work in the workspace of their conversation: ``use_sandboxes(); Conversation(agent=…, workspace=SwefarmWorkspace.open(…))``.
"""

from __future__ import annotations

import posixpath
import shutil
import tempfile
import threading
from pathlib import Path
from shlex import quote
from typing import Any, Optional, Sequence, Union

from openhands.sdk.git.models import GitChange, GitChangeStatus, GitDiff
from openhands.sdk.tool import ToolExecutor, register_tool
from openhands.sdk.workspace import LocalWorkspace
from openhands.sdk.workspace.models import CommandResult, FileOperationResult
from openhands.tools.file_editor.definition import FileEditorAction, FileEditorObservation, FileEditorTool
from openhands.tools.file_editor.impl import FileEditorExecutor
from openhands.tools.terminal.definition import TerminalAction, TerminalObservation, TerminalTool
from openhands.tools.terminal.metadata import CmdOutputMetadata

from swefarm.output import FileError, Verdict
from swefarm.sandbox import Sandbox
from swefarm.shell import Shell

#: The sandboxes of this process. Conversations copy and store workspaces, but cannot store a sandbox.
_sandboxes: dict[str, Sandbox] = {}
STATUS = {"A": GitChangeStatus.ADDED, "?": GitChangeStatus.ADDED, "D": GitChangeStatus.DELETED, "R": GitChangeStatus.MOVED}


class SwefarmWorkspace(LocalWorkspace):
    """
    ``folder`` is the repository in the sandbox. ``working_dir`` is an empty folder of this machine: the SDK reads skills and settings from
    it, and must not read those of the repository.
    """

    session_id: str
    folder: str

    @classmethod
    def open(cls, instance: Any = None, **options: Any) -> "SwefarmWorkspace":
        """Opens a sandbox; the arguments are those of :meth:`swefarm.Sandbox.open`."""
        return cls.over(Sandbox.open(instance, **options))

    @classmethod
    def over(cls, sandbox: Sandbox) -> "SwefarmWorkspace":
        """Returns the workspace of an open sandbox."""
        _sandboxes[sandbox.session_id] = sandbox
        local = tempfile.mkdtemp(prefix="swefarm-openhands-")
        return cls(working_dir=local, session_id=sandbox.session_id, folder=sandbox.workdir)

    @property
    def sandbox(self) -> Sandbox:
        return _sandboxes[self.session_id]

    def execute_command(self, command: str, cwd: Union[str, Path, None] = None, timeout: float = 30.0) -> CommandResult:
        done = self.sandbox.run(command, cwd=str(cwd or self.folder), timeout_s=timeout)
        code = -1 if done.exit_code is None else done.exit_code
        return CommandResult(command=command, exit_code=code, stdout=done.text, stderr="", timeout_occurred=done.timed_out)

    def file_upload(self, source_path: Union[str, Path], destination_path: Union[str, Path]) -> FileOperationResult:
        return self._copied(source_path, destination_path, lambda: self.sandbox.upload(source_path, str(destination_path)))

    def file_download(self, source_path: Union[str, Path], destination_path: Union[str, Path]) -> FileOperationResult:
        return self._copied(source_path, destination_path, lambda: self.sandbox.download(str(source_path), destination_path))

    def _copied(self, source: Union[str, Path], target: Union[str, Path], copy: Any) -> FileOperationResult:
        result = {"source_path": str(source), "destination_path": str(target)}
        try:
            copy()
        except OSError as error:
            return FileOperationResult(success=False, error=str(error), **result)
        local = Path(source) if Path(source).is_file() else Path(target)
        return FileOperationResult(success=True, file_size=local.stat().st_size if local.is_file() else None, **result)

    def git_changes(self, path: Union[str, Path]) -> list[GitChange]:
        command = f"git -C {quote(str(path))} --no-optional-locks status --porcelain=v1 -z --no-renames --untracked-files=all"
        done = self.sandbox.run(command)
        if done.exit_code != 0:
            raise ValueError(done.text.strip())
        lines = [line for line in done.text.split("\0") if line]
        return [
            GitChange(status=STATUS.get(line[:2].strip()[0], GitChangeStatus.UPDATED), path=Path(line[3:])) for line in lines
        ]

    def git_diff(self, path: Union[str, Path]) -> GitDiff:
        file = Path(self.folder) / path
        original = self.sandbox.run(f"git show HEAD:./{quote(file.name)} 2>/dev/null", cwd=str(file.parent))
        try:
            modified: Optional[str] = self.sandbox.read(str(file)).decode(errors="replace")
        except FileError:
            modified = None
        return GitDiff(original=original.text if original.exit_code == 0 else None, modified=modified)

    def pause(self) -> None:
        """Stops the time limit of the sandbox until its next command."""
        self.sandbox.pause()

    def resume(self) -> None:
        self.sandbox.resume()

    def submit(self, wait_s: float = 7200.0) -> Verdict:
        """Submits the tree of the sandbox and waits for the verdict."""
        return self.sandbox.submit(wait_s)

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        super().__exit__(exc_type, exc_val, exc_tb)
        _sandboxes.pop(self.session_id).close()
        shutil.rmtree(self.working_dir, ignore_errors=True)


class _Terminal(ToolExecutor):
    """A terminal whose folder and variables persist between commands."""

    def __init__(self, workspace: SwefarmWorkspace) -> None:
        self._workspace = workspace
        self._shell = Shell(workspace.sandbox, workspace.folder)

    def __call__(self, action: TerminalAction, conversation: Any = None) -> TerminalObservation:
        if action.reset:
            self._shell = Shell(self._workspace.sandbox, self._workspace.folder)
            if not action.command:
                return TerminalObservation.from_text(text="The terminal is new.", command="[RESET]", exit_code=0)
        if action.is_input or not action.command:
            text = "No program waits for input: each command runs to its end, or to its timeout."
            return TerminalObservation.from_text(text=text, command=action.command, is_error=True)
        done = self._shell.run(action.command, action.timeout)
        code = 124 if done.exit_code is None else done.exit_code
        metadata = CmdOutputMetadata(exit_code=code, suffix=f"\n[The command was ended: {done.note}]" if done.note else "")
        return TerminalObservation.from_text(
            text=done.text.rstrip("\n"), command=action.command, exit_code=code, timeout=done.timed_out, metadata=metadata
        )


class _FileEditor(ToolExecutor):
    """
    The SDK's own editor, which works on copies: each action fetches the file, and writes it back after an edit. The model's path names a
    file of the sandbox alone: its copy is below the folder of the copies, whatever ``..`` and links the path has.
    """

    def __init__(self, workspace: SwefarmWorkspace) -> None:
        self._workspace = workspace
        self._copies = f"{workspace.working_dir}/files"
        self._editor = FileEditorExecutor()
        self._lock = threading.Lock()

    def __call__(self, action: FileEditorAction, conversation: Any = None) -> FileEditorObservation:
        if not action.path.startswith("/"):
            # The SDK would look for the file on this machine, to suggest a path.
            return self._refused(action, f"Invalid `path` parameter: {action.path}. The path should be an absolute path.")
        try:
            # Actions may be concurrent, and there is one folder of copies.
            with self._lock:
                return self._edit(action)
        except (OSError, ValueError) as error:
            return self._refused(action, str(error).replace(self._copies, ""))

    def _edit(self, action: FileEditorAction) -> FileEditorObservation:
        sandbox, path = self._workspace.sandbox, posixpath.normpath("/" + action.path.lstrip("/"))
        copy = Path(self._copies + path)
        found = sandbox.run(f"stat -Lc '%f' -- {quote(path)} && readlink -f -- {quote(path)}", cwd="/").text.splitlines()
        mode = int(found[0], 16) if len(found) == 2 else None
        if mode is not None and mode >> 12 == 4:
            return self._folder(action)
        shutil.rmtree(self._copies, ignore_errors=True)
        copy.parent.mkdir(parents=True)
        if mode is not None:
            copy.write_bytes(sandbox.read(found[1]))
        done = self._editor(action.model_copy(update={"path": str(copy)}))
        if action.command != "view" and not done.is_error:
            sandbox.write(found[1] if mode is not None else path, copy.read_bytes(), (mode or 0o644) & 0o7777)
        update = {"path": path if done.path else None}
        content = [part.model_copy(update={"text": part.text.replace(self._copies, "")}) for part in done.content if hasattr(part, "text")]
        return done.model_copy(update={**update, "content": content})

    def _refused(self, action: FileEditorAction, why: str) -> FileEditorObservation:
        return FileEditorObservation.from_text(text=why, command=action.command, is_error=True)

    def _folder(self, action: FileEditorAction) -> FileEditorObservation:
        if action.command != "view":
            return self._refused(action, f"{action.path} is a folder: only `view` works on folders.")
        listed = self._workspace.sandbox.run(f"find -L {quote(action.path)} -maxdepth 2 -not -path '*/.*' | sort")
        text = f"Here's the files and directories up to 2 levels deep in {action.path}, excluding hidden items:\n{listed.text}"
        return FileEditorObservation.from_text(text=text, command=action.command, path=action.path)


class SandboxTerminalTool(TerminalTool):
    """The terminal of a conversation whose workspace is a sandbox; another workspace gets the SDK's own."""

    name = TerminalTool.name

    @classmethod
    def create(cls, conv_state: Any, **options: Any) -> Sequence[TerminalTool]:
        made = TerminalTool.create(conv_state, executor=_executor(_Terminal, conv_state), **options)
        return made


class SandboxFileEditorTool(FileEditorTool):
    """The editor of a conversation whose workspace is a sandbox; another workspace gets the SDK's own."""

    name = FileEditorTool.name

    @classmethod
    def create(cls, conv_state: Any) -> Sequence[FileEditorTool]:
        made = FileEditorTool.create(conv_state)
        executor = _executor(_FileEditor, conv_state)
        folder = getattr(conv_state.workspace, "folder", "")
        local = str(conv_state.workspace.working_dir)
        return [
            tool.model_copy(update={"executor": executor, "description": tool.description.replace(local, folder)})
            if executor
            else tool
            for tool in made
        ]


def _executor(kind: Any, conv_state: Any) -> Optional[ToolExecutor]:
    workspace = conv_state.workspace
    return kind(workspace) if isinstance(workspace, SwefarmWorkspace) else None


def use_sandboxes() -> None:
    """Replaces the tools ``terminal`` and ``file_editor`` of this process. Call it before the first conversation."""
    register_tool(TerminalTool.name, SandboxTerminalTool)
    register_tool(FileEditorTool.name, SandboxFileEditorTool)
