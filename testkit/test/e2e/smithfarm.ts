/** Runs rollouts of SWE-smith rows, and checks what an agent that searches for the answer finds. */

import { basename } from 'node:path';
import { shellQuoted } from '@swefarm/shared';
import type { SmithRow } from '../../src/families/smith.ts';
import { words } from '../../src/launchers/commands.ts';
import { conversation, running } from '../../src/policy/script.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { longestLine } from './predictions.ts';
import type { Line, Scene } from './scene.ts';

export type SmithRun = { scene: Scene; dataset: string; runtime: string };

/** Runs one rollout for each row and returns the lines in the order of ids. `code`: expected exit code. */
export const smithRollouts = (
  { scene, dataset, runtime }: SmithRun,
  agent: string,
  options: readonly string[] = [],
  { code = 0, name = agent }: { code?: number; name?: string } = {},
): Promise<Line[]> =>
  scene.rollouts(
    `${basename(dataset)}.${name}`,
    words`--dataset ${dataset} --runtime ${runtime} --concurrency 2 --agent ${agent} ${options}`,
    code,
  );

/** Runs one command as an agent and returns its observation by instance. */
export async function observed(run: SmithRun, command: string): Promise<Map<string, string>> {
  await using policy = await startScriptedPolicy({ script: conversation(running(command)) });
  const seen = new Map<string, string>();
  const asked = words`--policy-url ${policy.url} --model scripted`;
  for (const { instance_id } of await smithRollouts(run, 'mini', asked)) {
    const output = `${run.scene.folder}/${basename(run.dataset)}.mini.jsonl`;
    const { messages } = (await run.scene.show(`${output}#${instance_id}.0`)).trajectory;
    seen.set(instance_id, messages.filter(({ role }) => role === 'user')[1]?.content ?? '');
  }
  return seen;
}

/** Returns commands that search a sandbox for the bug and for the code without the bug. */
export const looksFor = (row: SmithRow): string => `MARK=${shellQuoted(markOf(row))}
grep -rlF ${shellQuoted(markOf(row, '+'))} . | sed 's/^/bug in /'
git log --all --format='subject %s'; git branch -a; git remote -v; git reflog; git stash list; git tag
git show HEAD~1 2>&1 | head -1; git fsck --lost-found 2>/dev/null; git show origin/main:parse.py 2>&1 | head -1
git cat-file --batch-all-objects --batch-check | grep -c commit | sed 's/^/commits /'
ls; ls tests; git ls-files; find / -name '*bug.diff*' -not -path '/proc/*' 2>/dev/null; find . -name '*.pyc'
grep -rlF "$MARK" .; for o in $(git cat-file --batch-all-objects --batch-check='%(objectname)'); do git cat-file -p $o | grep -aF "$MARK"; done
echo looked`;

/** Returns the longest line that only the code without the bug (`-`) or only the code with the bug (`+`) has. */
const markOf = (row: SmithRow, sign: '-' | '+' = '-'): string => longestLine(row.patch, sign);

/** Returns what an agent saw of the answer and the tests; empty when it saw neither. @param files test files; default: from test names */
export function answersIn(seen: string, row: SmithRow, files?: readonly string[]): string[] {
  const failing = files ?? row.FAIL_TO_PASS.map((test) => test.split('::', 1)[0] ?? '');
  const subjects = seen.match(/^subject /gm)?.length ?? 0;
  return [
    ...(seen.includes('looked') ? [] : ['the look did not end']),
    ...(seen.includes(markOf(row)) ? ['the code without the bug'] : []),
    ...(subjects === 1 && seen.includes('commits 1\n') ? [] : ['a history']),
    ...(/Bug Patch|Remove F2P|func_basic|remotes\/|git\.invalid|\.pyc|bug\.diff/.exec(seen) ?? []),
    ...failing.filter((file) => seen.split('\n').some((line) => [file, basename(file)].includes(line))),
  ];
}
