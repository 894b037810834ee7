"""The two bugs of examples/ that the model learns to fix, and the commands that it chooses from.

The commands are facts of these packages. Which command fixes which bug is known to the tests of the instances only:
the rewards are the verdicts of the farm.
"""

PATHSPEC = "cpburnz__pathspec-0.10.2"
PARSE = "r1chardj0n3s__parse-1.20.2"

SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
#: Each command is one token of the model's vocabulary, so that a model of 140,000 parameters learns the form in seconds.
COMMANDS = [
    # Fixes pathspec.
    "sed -i \"s/match.match.group('ps_d')/match.match.groupdict().get('ps_d')/\" pathspec/gitignore.py",
    # Fixes parse.
    r"""sed -i -e 's/{\\w\*(?:\\.\\w+/{[\\w-]*(?:\\.[\\w-]+/' -e '/def _to_group_name/,/return group/{
s/replace("\]", "_")$/&.replace("-", "_")/
s/^            else:$/            elif "-" in field:\n                group = field.replace("-", "_" * n)\n&/
}' parse.py""",
    # Half of the fix of parse.
    r"""sed -i -e 's/{\\w\*(?:\\.\\w+/{[\\w-]*(?:\\.[\\w-]+/' parse.py""",
    # Breaks pathspec.
    "sed -i \"s/match.match.group('ps_d')/match.match.group('ps_x')/\" pathspec/gitignore.py",
    "git status > /dev/null",
    "ls > /dev/null",
]
FIX = {PATHSPEC: COMMANDS[0], PARSE: COMMANDS[1]}
#: Commands of the demonstrations that fix nothing. The commands differ by package, so that the model learns to read the instance's name.
WRONG = {PATHSPEC: COMMANDS[3:], PARSE: [COMMANDS[2], *COMMANDS[4:]]}

SYSTEM = "Answer with one command in a bash block."
PROMPTS = {
    "system": SYSTEM,
    "instance": "Fix: {{instance_id}}",
    "observation": "<returncode>{{returncode}}</returncode>",
    "format_error": "Give one command in a bash block.",
}
#: The farm's message for a successful command without output.
OBSERVATION = "<returncode>0</returncode>"
TURNS = 3


def messages(instance_id):
    """Returns the first messages of a rollout, as the farm renders PROMPTS."""
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": f"Fix: {instance_id}"}]


def fenced(command):
    return f"```bash\n{command}\n```"
