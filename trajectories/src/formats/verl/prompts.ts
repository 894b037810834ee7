/**
 * Builds the prompt of a row. Style `tools` asks for work with tools. Styles `style-2` and `style-3` ask for a patch as the answer and
 * show an example patch: `style-2` after the request for the patch, `style-3` before it.
 */
import type { Instance } from '@swefarm/shared';

export const PROMPT_STYLES = ['tools', 'style-2', 'style-3'] as const;
export type PromptStyle = (typeof PROMPT_STYLES)[number];

type ChatTurn = { role: 'system' | 'user'; content: string };

const TOOLS_SYSTEM =
  'You are an experienced software engineer. You work on one repository through a Linux shell: call the tool `bash` with ' +
  'one command at a time and read what it shows. When the work is done, call the tool `submit_solution`.';

const toolsTask = ({ repo, problem_statement }: Instance): string => `Solve this issue of ${repo}:

<issue>
${problem_statement}
</issue>

Change the source files so that the issue is solved in general, not only for the example it shows. Do not change existing tests or the project's configuration; other tests will judge your work.

- Find the code, write a small script that shows the problem, change the source, run the script and the tests near the change.
- Each command runs in a fresh subshell that starts in the repository: \`cd\` and variables do not last. Files do.
- Nothing can be typed into a running command. Long output is shortened in the middle.
- Delete your scripts, then call \`submit_solution\`. After it nothing can be changed.`;

const EXAMPLE = `<patch>
--- a/package/area.py
+++ b/package/area.py
@@ -1,3 +1,3 @@
 def area(width, height):
     """Of a rectangle."""
-    return width + height
+    return width * height
</patch>`;

const PATCH_SYSTEM =
  'You are an experienced software engineer. You are given an issue of a repository and answer with one patch.';
const issueOf = ({ repo, base_commit, problem_statement }: Instance): string =>
  `This is an issue of ${repo} at commit ${base_commit}:\n\n<issue>\n${problem_statement}\n</issue>`;
const ASK =
  'Solve it with one unified diff that `git apply` takes at the root of the repository, between <patch> and </patch>.';

export function promptOf(instance: Instance, style: PromptStyle): ChatTurn[] {
  const issue = issueOf(instance);
  const user = {
    tools: toolsTask(instance),
    'style-2': `${issue}\n\n${ASK} Such a patch looks like this:\n\n${EXAMPLE}`,
    'style-3': `${issue}\n\nA patch looks like this:\n\n${EXAMPLE}\n\n${ASK}`,
  }[style];
  return [
    { role: 'system', content: style === 'tools' ? TOOLS_SYSTEM : PATCH_SYSTEM },
    { role: 'user', content: user },
  ];
}
