"""
Drives a sandbox of the farm with the classes of another project and a scripted model: drive.py LOOP ROW.json. Prints one line of JSON: the
verdict, and what was checked. The classes of mini-swe-agent, SWE-ReX, OpenHands SDK and NeMo Gym are the real ones.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable

ROW = json.loads(Path(sys.argv[2]).read_text())
PATCH = ROW["patch"]
APPLY = "git apply /tmp/gold.patch && git diff --stat"
CHECKS: dict[str, Any] = {}


def check(name: str, got: Any, wanted: Any) -> None:
    CHECKS[name] = True if got == wanted else {"got": got, "wanted": wanted}


def mini() -> Any:
    from minisweagent.agents.default import DefaultAgent
    from minisweagent.environments import get_environment
    from minisweagent.models.test_models import DeterministicModel, make_output

    env = get_environment(
        {"environment_class": "swefarm.integrations.mini.SwefarmEnvironment", "instance": ROW, "env": {"PAGER": "cat"}, "timeout": 20}
    )
    env.sandbox.write("/tmp/gold.patch", PATCH)
    commands = ["pwd; echo $PAGER; false", "sleep 30", APPLY, "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; git diff"]
    env.config.timeout = 3
    model = DeterministicModel(outputs=[make_output(f"step {i}", [{"command": c}]) for i, c in enumerate(commands)])
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "x.traj.json"
        agent = DefaultAgent(
            model, env, system_template="You work on {{system}}.", instance_template="{{task}} in {{cwd}}", cost_limit=100, output_path=output
        )
        info = agent.run("Fix it")
        written = json.loads(output.read_text())
    check("prompts", [m["content"] for m in agent.messages[:2]], ["You work on Linux.", "Fix it in /testbed"])
    check("exit", info["exit_status"], "Submitted")
    check("submission", "diff --git" in info["submission"], True)
    observations = [m["content"] for m in agent.messages if m["role"] == "user"][1:]
    check("output", observations[0], "<returncode>1</returncode>\n<output>\n/testbed\ncat\n</output>")
    check("timeout", "Command timed out after 3 seconds" in observations[1], True)
    check("environment", written["info"]["config"]["environment_type"], "swefarm.integrations.mini.SwefarmEnvironment")
    return env.submit()


def swerex() -> Any:
    from swerex.exceptions import BashIncorrectSyntaxError, CommandTimeoutError, NonZeroExitCodeError
    from swerex.runtime.abstract import (
        BashAction,
        BashInterruptAction,
        CloseBashSessionRequest,
        Command,
        CreateBashSessionRequest,
        ReadFileRequest,
        UploadRequest,
        WriteFileRequest,
    )

    from swefarm.integrations.swerex import SwefarmDeployment

    async def drive() -> Any:
        deployment = SwefarmDeployment(instance=ROW)
        await deployment.start()
        runtime = deployment.runtime
        await runtime.create_session(CreateBashSessionRequest(startup_source=["/etc/profile"]))

        async def bash(command: str, **more: Any) -> Any:
            return await runtime.run_in_session(BashAction(command=command, **more))

        await bash("cd /testbed; export A='x y'; b=$'two\\nlines'; f() { echo \"f $1\"; }; alias hi='echo hello'; set -- 1")
        told = await bash("pwd; echo \"$A|$b\"; f 7\nhi")
        check("state", told.output, "/testbed\nx y|two\nlines\nf 7\nhello\n")
        check("exit code", (await bash("(exit 3)", check="silent")).exit_code, 3)
        await bash("cd /; exit 4", check="silent")
        check("state after exit", (await bash("pwd; f 8")).output, "/\nf 8\n")
        for name, command, error in (
            ("raise", "false", NonZeroExitCodeError),
            ("syntax", "if then", BashIncorrectSyntaxError),
            ("timeout", "A=lost; sleep 20", CommandTimeoutError),
        ):
            try:
                await bash(command, timeout=1.0)
                CHECKS[name] = "no error"
            except error:
                CHECKS[name] = True
        await runtime.run_in_session(BashInterruptAction())
        check("state after timeout", (await bash("echo $A")).output, "x y\n")
        done = await runtime.execute(Command(command=["sh", "-c", "echo $0; pwd", "a b"], cwd="/tmp"))
        check("execute", (done.stdout, done.exit_code), ("a b\n/tmp\n", 0))
        await runtime.write_file(WriteFileRequest(path="/tmp/gold.patch", content=PATCH))
        check("read", (await runtime.read_file(ReadFileRequest(path="/tmp/gold.patch"))).content, PATCH)
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "bin").mkdir()
            tool = Path(folder) / "bin/tool"
            tool.write_text("#!/bin/sh\necho a tool\n")
            tool.chmod(0o755)
            await runtime.upload(UploadRequest(source_path=folder, target_path="/root/tools"))
        check("upload", (await bash("export PATH=/root/tools/bin:$PATH; tool")).output, "a tool\n")
        check("path", (await bash("tool")).output, "a tool\n")
        await bash(f"cd /testbed && {APPLY}")
        await runtime.close_session(CloseBashSessionRequest())
        verdict = await deployment.submit()
        await deployment.stop()
        return verdict

    return asyncio.run(drive())


def sweagent() -> Any:
    """Needs a checkout of SWE-agent, which is not on PyPI."""
    import yaml
    from sweagent import CONFIG_DIR
    from sweagent.agent.agents import DefaultAgent, DefaultAgentConfig
    from sweagent.agent.models import PredeterminedTestModel
    from sweagent.agent.problem_statement import TextProblemStatement
    from sweagent.environment.repo import PreExistingRepoConfig
    from sweagent.environment.swe_env import SWEEnv
    from sweagent.tools.tools import ToolHandler

    from swefarm.integrations.swerex import SwefarmDeployment

    def call(name: str, **arguments: Any) -> dict[str, Any]:
        function = {"name": name, "arguments": json.dumps(arguments)}
        return {"message": "next", "tool_calls": [{"id": f"call_{name}", "type": "function", "function": function}]}

    given = yaml.safe_load((CONFIG_DIR / "default.yaml").read_text())["agent"]
    config = DefaultAgentConfig(**given, model={"name": "instant_empty_submit"})
    edit = {"command": "create", "path": "/tmp/gold.patch", "file_text": PATCH}
    outputs = [
        call("bash", command="pwd && ls | head -3"),
        call("str_replace_editor", **edit),
        call("bash", command=APPLY),
        call("submit"),
        call("submit"),
    ]
    deployment = SwefarmDeployment(instance=ROW)
    repo = PreExistingRepoConfig(repo_name="testbed", reset=False)
    env = SWEEnv(deployment=deployment, repo=repo, post_startup_commands=[])
    with tempfile.TemporaryDirectory() as folder:
        agent = DefaultAgent(
            templates=config.templates,
            tools=ToolHandler(config.tools),
            history_processors=config.history_processors,
            model=PredeterminedTestModel(outputs),  # type: ignore[arg-type]
        )
        env.start()
        result = agent.run(problem_statement=TextProblemStatement(text="Fix it", id="x"), env=env, output_dir=Path(folder))
    check("exit", result.info["exit_status"], "submitted")
    check("submission", "diff --git" in (result.info.get("submission") or ""), True)
    check("folder", result.trajectory[0]["observation"].splitlines()[0], "/testbed")
    verdict = asyncio.run(deployment.submit())
    env.close()
    return verdict


def openhands() -> Any:
    from openhands.sdk import Agent, Conversation
    from openhands.sdk.llm import Message, MessageToolCall, TextContent
    from openhands.sdk.testing import TestLLM
    from openhands.tools.preset.default import get_default_tools

    from swefarm.integrations.openhands import SwefarmWorkspace, use_sandboxes

    count = iter(range(100))

    def call(name: str, **arguments: Any) -> Message:
        tool = MessageToolCall(id=f"call_{next(count)}", name=name, arguments=json.dumps(arguments), origin="completion")
        return Message(role="assistant", content=[TextContent(text="next")], tool_calls=[tool])

    use_sandboxes()
    mark = tempfile.mkdtemp()
    (Path(mark) / "own").write_text("secret\n")
    notes = "/testbed/notes.txt"
    llm = TestLLM.from_messages(
        [
            call("terminal", command="cd /tmp && export A=kept && pwd"),
            call("terminal", command="pwd; echo $A; sleep 20", timeout=1),
            call("terminal", command="", is_input=True),
            call("file_editor", command="create", path="/tmp/gold.patch", file_text=PATCH),
            call("file_editor", command="view", path="/testbed"),
            call("file_editor", command="create", path=notes, file_text="one\ntwo\n"),
            call("file_editor", command="str_replace", path=notes, old_str="two", new_str="three"),
            call("file_editor", command="view", path=notes),
            call("file_editor", command="view", path="/testbed/nothing"),
            # Files of this machine, seen from the folder of the copies and from the sandbox.
            call("file_editor", command="view", path=f"/../../..{mark}/own"),
            call("file_editor", command="create", path=f"/../../..{mark}/new/made", file_text="made\n"),
            call("terminal", command=f"ln -s {mark} /tmp/link && echo theirs > {mark}/own && cat {mark}/new/made"),
            call("file_editor", command="str_replace", path="/../../../tmp/link/own", old_str="theirs", new_str="changed"),
            call("terminal", command=f"cd /testbed && cat notes.txt && rm notes.txt && {APPLY}"),
            call("finish", message="done"),
        ]
    )
    agent = Agent(llm=llm, tools=get_default_tools(enable_browser=False))
    seen: list[str] = []

    def listen(event: Any) -> None:
        observation = getattr(event, "observation", None)
        if observation is not None:
            seen.append("".join(part.text for part in observation.to_llm_content if hasattr(part, "text")))

    with SwefarmWorkspace.open(ROW) as workspace:
        conversation = Conversation(agent=agent, workspace=workspace, callbacks=[listen], visualizer=None)
        conversation.send_message("Fix it")
        conversation.run()
        check("status", conversation.state.execution_status.value, "finished")
        check("folder", seen[0], "/tmp\n[Command finished with exit code 0]")
        check("timeout", "/tmp\nkept" in seen[1] and "timed_out" in seen[1], True)
        check("no program", "No program waits" in seen[2], True)
        check("listing", "/testbed/parse.py" in seen[4], True)
        check("view", "one" in seen[7] and "three" in seen[7], True)
        check("missing", "does not exist" in seen[8] and "swefarm-openhands" not in seen[8], True)
        check("no way out", "does not exist" in seen[9] and "secret" not in seen[9] and seen[11].startswith("made\n"), True)
        check("by a link", "changed" in seen[12], True)
        check("this machine", [(file.name, file.read_text()) for file in Path(mark).iterdir()], [("own", "secret\n")])
        check("cat", seen[13].startswith("one\nthree\n"), True)
        changes = [(c.status.value, str(c.path)) for c in workspace.git_changes("/testbed")]
        check("changes", ("UPDATED", "parse.py") in changes, True)
        diff = workspace.git_diff("parse.py")
        check("diff", diff.original != diff.modified and None not in (diff.original, diff.modified), True)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "x"
            check("download", workspace.file_download("/tmp/gold.patch", file).success and file.read_text() == PATCH, True)
            check("upload", workspace.file_upload(file, "/tmp/a/b").success, True)
            check("no file", workspace.file_download("/tmp", file).success, False)
        check("command", workspace.execute_command("cat /tmp/a/b").stdout, PATCH)
        return workspace.submit()


def gym() -> Any:
    from nemo_gym.sandbox.api import AsyncSandbox
    from nemo_gym.sandbox.providers import SandboxCreateError, SandboxSpec, SandboxStatus, list_providers

    check("registered", "swefarm" in list_providers(), True)

    async def drive() -> Any:
        spec = SandboxSpec(
            env={"A": "of all"}, files={"/tmp/gold.patch": PATCH}, provider_options={"instance": ROW}, ready_timeout_s=120
        )
        sandbox = AsyncSandbox({"swefarm": {}}, spec)
        await sandbox.start()
        done = await sandbox.exec("pwd; echo $A $B; exit 3", env={"B": "of one"})
        check("exec", (done.stdout, done.return_code, done.error_type), ("/testbed\nof all of one\n", 3, None))
        late = await sandbox.exec("echo begun; sleep 20", timeout_s=1)
        check("timeout", (late.stdout, late.error_type), ("begun\n", "timeout"))
        check("apply", (await sandbox.exec(APPLY)).return_code, 0)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "x"
            await sandbox.download("/tmp/gold.patch", file)
            check("download", file.read_text(), PATCH)
            await sandbox.upload(file, "copy.patch")
        check("upload", (await sandbox.exec("cmp copy.patch /tmp/gold.patch && rm copy.patch")).return_code, 0)
        check("status", await sandbox.status(), SandboxStatus.RUNNING)
        verdict = await sandbox._provider.submit(sandbox._require_handle())  # type: ignore[attr-defined]
        await sandbox.stop()
        try:
            await AsyncSandbox({"swefarm": {}}, SandboxSpec()).start()
            CHECKS["no instance"] = "no error"
        except SandboxCreateError as error:
            check("no instance", "instance" in str(error), True)
        return verdict

    return asyncio.run(drive())


LOOPS: dict[str, Callable[[], Any]] = {"mini": mini, "swerex": swerex, "sweagent": sweagent, "openhands": openhands, "gym": gym}
verdict = LOOPS[sys.argv[1]]()
check("verdict", [verdict.judged, verdict.resolved, verdict.reward, verdict.exit_status], [True, True, 1, "submitted"])
print(json.dumps({"loop": sys.argv[1], "checks": CHECKS, "turns": verdict.result["turns"]}))
