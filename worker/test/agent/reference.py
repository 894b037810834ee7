"""Runs cases with SWE-agent's own str_replace_editor, found in the folder TOOLS: python3 reference.py TOOLS CASES.

Prints, as JSON, what each call shows and leaves in its file. Each call has a new tool, as a call of the command has. The history of edits
goes on from call to call, as in Anthropic's tool: SWE-agent's loses it (`_file_history` is a property whose changes are not stored).
"""

import base64, contextlib, importlib.machinery, importlib.util, io, json, os, shutil, sys, traceback
from collections import defaultdict

TOOLS, CASES = sys.argv[1:]
sys.path.insert(0, TOOLS + "/registry/lib")
os.environ["SWE_AGENT_ENV_FILE"] = "/tmp/swe-agent-env"
loader = importlib.machinery.SourceFileLoader("editor", TOOLS + "/edit_anthropic/bin/str_replace_editor")
module = importlib.util.module_from_spec(importlib.util.spec_from_loader("editor", loader))
loader.exec_module(module)
history = defaultdict(list)


class Tool(module.EditTool):
    _file_history = property(lambda self: history)


def content(path):
    if not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        return base64.b64encode(file.read()).decode()


def played(call):
    code, printed = 0, io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            Tool()(**call)
        except SystemExit as end:
            code = end.code
        except Exception:
            code = "broken: " + traceback.format_exc(limit=-1).strip().split("\n")[-1]
    return {"code": code, "text": printed.getvalue(), "file": content(call["path"])}


answers = []
for case in json.load(open(CASES)):
    history.clear()
    os.makedirs(os.path.dirname(case["path"]), exist_ok=True)
    with open(case["path"], "wb") as file:
        file.write(base64.b64decode(case["file"]))
    answers.append([played(call) for call in case["calls"]])
    shutil.rmtree(os.path.dirname(case["path"]))
sys.stdout.write(json.dumps(answers) + "\n")
