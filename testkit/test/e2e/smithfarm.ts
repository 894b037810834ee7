/** Runs of the farm over rows of SWE-smith, and what an agent without scruples finds there. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import type { SmithRow } from '../../src/families/smith.ts';
import { runCommand } from '../../src/launchers/commands.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';

export type SmithLine = {
  instance_id: string;
  outcome: string;
  resolved: boolean | null;
  reward: number | null;
  failure: { class: string; message: string } | null;
  report: {
    patch_state: string;
    grader: string;
    parser: string;
    trust: { level: string; reasons: string[] };
  } | null;
};

export type SmithFarm = AsyncDisposable & {
  folder: string;
  env: Record<string, string>;
  /** Writes rows; the file's path. */
  write(name: string, rows: readonly object[]): Promise<string>;
  /** One rollout for each row, its lines by id. @param code the exit code that the command must have */
  rollouts(
    dataset: string,
    runtime: string,
    name: string,
    options: string[],
    code?: number,
  ): Promise<SmithLine[]>;
  /** What an agent sees that runs one command: its first observation, by instance. */
  observed(dataset: string, runtime: string, command: string): Promise<Map<string, string>>;
};

export async function openSmithFarm(): Promise<SmithFarm> {
  const folder = await mkdtemp(join(tmpdir(), 'swefarm-smith-'));
  const env = { SWEFARM_STATE_DIR: join(folder, 'state'), SWEFARM_SCRATCH_DIR: join(folder, 'scratch') };
  const rollouts: SmithFarm['rollouts'] = async (dataset, runtime, name, options, code = 0) => {
    const output = `${dataset}.${name}.out`;
    const args = [
      'rollout',
      '--dataset',
      dataset,
      '--runtime',
      runtime,
      '--concurrency',
      '2',
      '--output',
      output,
    ];
    const ended = await runCommand('swefarm', [...args, ...options], env);
    if (ended.code !== code) throw new Error(`exit code ${ended.code}: ${ended.stderr}`);
    const lines = (await readFile(output, 'utf8')).split('\n').filter(Boolean);
    return lines
      .map((line): SmithLine => JSON.parse(line))
      .sort((a, b) => (a.instance_id < b.instance_id ? -1 : 1));
  };
  return {
    folder,
    env,
    rollouts,
    async write(name, rows) {
      const path = join(folder, name);
      await writeFile(path, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
      return path;
    },
    async observed(dataset, runtime, command) {
      const turns = [
        { command, repeat: 1 },
        { submit: true as const, repeat: 1 },
      ];
      await using policy = await startScriptedPolicy({ script: { conversations: [{ variants: [turns] }] } });
      const asked = ['--agent', 'mini', '--policy-url', policy.url, '--model', 'scripted'];
      const seen = new Map<string, string>();
      for (const { instance_id } of await rollouts(dataset, runtime, 'agent', asked)) {
        const rollout = `${dataset}.agent.out#${instance_id}.0`;
        const { stdout } = await runCommand('swefarm', ['show', rollout, '--json'], env);
        const { messages } = JSON.parse(stdout).content.trajectory as {
          messages: { role: string; content: string }[];
        };
        seen.set(instance_id, messages.filter(({ role }) => role === 'user')[1]?.content ?? '');
      }
      return seen;
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** Everything an agent without scruples asks of its sandbox: where the bug is, and where the code without it may lie. */
export const looksFor = (row: SmithRow): string => `MARK=${quote(markOf(row))}
grep -rlF ${quote(markOf(row, '+'))} . | sed 's/^/bug in /'
git log --all --format='subject %s'; git branch -a; git remote -v; git reflog; git stash list; git tag
git show HEAD~1 2>&1 | head -1; git fsck --lost-found 2>/dev/null; git show origin/main:parse.py 2>&1 | head -1
git cat-file --batch-all-objects --batch-check | grep -c commit | sed 's/^/commits /'
ls; ls tests; git ls-files; find / -name '*bug.diff*' -not -path '/proc/*' 2>/dev/null; find . -name '*.pyc'
grep -rlF "$MARK" .; for o in $(git cat-file --batch-all-objects --batch-check='%(objectname)'); do git cat-file -p $o | grep -aF "$MARK"; done
echo looked`;

/** The longest line that only the code without the bug has, or only the one with it. */
function markOf(row: SmithRow, sign: '-' | '+' = '-'): string {
  const lines = row.patch
    .split('\n')
    .filter((line) => line.startsWith(sign) && !line.startsWith(sign.repeat(3)))
    .map((line) => line.slice(1).trim());
  const [mark] = lines.sort((a, b) => b.length - a.length);
  if (!mark) throw new Error(`the bug has no line with ${sign}`);
  return mark;
}

/** What is wrong with what an agent saw; empty when it saw neither the answer nor the tests. @param files with the tests; Python's names have them */
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
