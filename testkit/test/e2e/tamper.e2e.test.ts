/** Tests that patches and agents that attack the grader are detected and get no reward, on real containers. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { buildExamples } from '../../src/examples/build.ts';
import { words } from '../../src/launchers/commands.ts';
import { readLines, writeLines } from '../../src/lines.ts';
import { conversation, running } from '../../src/policy/script.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { type Attack, attacks } from './attacks.ts';
import { predictionsOf } from './predictions.ts';
import { type Line, openScene, type Shown } from './scene.ts';
import { EXAMPLE_ID } from './scripts.ts';

type Row = { instance_id: string; image: string; FAIL_TO_PASS: string[]; PASS_TO_PASS: string[] };
const scene = openScene();
const { folder } = scene;
let row: Row;
let tried: { attack: Attack; patch: string }[];

beforeAll(async () => {
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: 'both', out: folder });
  row = (await readLines<Row>(built.files.docker ?? '')).at(0) as Row;
  tried = attacks([...row.FAIL_TO_PASS, ...row.PASS_TO_PASS]).map((attack) => ({
    attack,
    patch: patchOf(row.image, attack.script),
  }));
});

/** Returns the patch of a script's changes to the image's tree, without the image's own uncommitted edits. */
function patchOf(image: string, script: string): string {
  const git = 'git -c user.name=n -c user.email=e@x';
  const whole = `cd /testbed && ${git} commit -qam dirty\n${script}\ngit add -A && git diff --cached --binary HEAD`;
  return execFileSync('docker', ['run', '--rm', '-i', '--network', 'none', image, 'bash'], {
    input: whole,
    encoding: 'utf8',
  });
}

const rollouts = (name: string, dataset: string, flags: readonly string[]): Promise<Line[]> =>
  scene.rollouts(name, words`--dataset ${dataset} --concurrency 2 ${flags}`);

/** Runs rollouts of an agent that runs the commands and submits. */
async function played(name: string, dataset: string, runtime: string, commands: string[]): Promise<Line[]> {
  await using policy = await startScriptedPolicy({ script: conversation(running(...commands)) });
  const asked = words`--agent mini --policy-url ${policy.url} --model scripted --runtime ${runtime}`;
  return await rollouts(name, dataset, asked);
}

describe.each(['docker', 'rootfs'] as const)('patches that attack the tests, on %s', (runtime) => {
  const here = ({ only }: Attack): boolean => only === undefined || only === runtime;
  let lines: Line[];
  let own: Attack[];
  beforeAll(async () => {
    const mine = tried.filter(({ attack }) => here(attack));
    own = mine.map(({ attack }) => attack);
    const predictions = mine.flatMap(({ patch }) => predictionsOf([EXAMPLE_ID], patch));
    const patches = await writeLines(join(folder, `predictions.${runtime}.jsonl`), predictions);
    // Gold is healthy by the registry, so tests that cannot start are caused by the patch.
    const dataset = join(folder, `instances.${runtime}.jsonl`);
    await scene.done`health --dataset ${dataset} --runtime ${runtime}`;
    const flags = words`--agent patch --patches ${patches} --runtime ${runtime} --group-size ${own.length}`;
    lines = await rollouts(`patches-${runtime}`, dataset, flags);
  });

  const names = attacks([])
    .filter(here)
    .map(({ name }, index) => [name, index] as const);
  test.each(names)('%s', (_name, index) => {
    const { expected } = own[index] as Attack;
    const line = lines[index] as Line;
    const trust = line.report?.trust;
    expect.soft(trust?.level, trust?.reasons.join('; ')).toBe(expected.level);
    for (const reason of expected.reasons) expect.soft(trust?.reasons.join('\n')).toMatch(reason);
    expect
      .soft({ resolved: line.resolved, reward: line.reward })
      .toEqual({ resolved: expected.resolved, reward: expected.reward });
  });
});

/** Builds the example's image with a later fix that is committed, tagged, packed, stashed and on a remote branch; HEAD is unchanged. */
function imageWithFuture(image: string): string {
  const name = `swefarm-test/future:${process.pid}`;
  const git = 'git -c user.name=n -c user.email=e@x';
  const script = `cd /testbed && cp parse.py /tmp/dirty.py && head=$(git rev-parse HEAD) && ${git} commit -qam dirty
    echo '# THE FIX, committed' >>parse.py; ${git} commit -qam 'future fix'; git tag v99; git update-ref refs/remotes/origin/main HEAD
    git remote add origin https://example.invalid/x; git repack -qad
    echo '# THE FIX, stashed' >>parse.py; ${git} stash -q; echo '# THE FIX, loose' | git hash-object -w --stdin
    git reset -q --hard $head && cp /tmp/dirty.py parse.py && rm /tmp/dirty.py`;
  const container = `swefarm-future-${process.pid}`;
  execFileSync('docker', ['run', '-i', '--name', container, '--network', 'none', image, 'bash', '-e'], {
    input: script,
  });
  try {
    execFileSync('docker', ['commit', '-c', 'LABEL swefarm.test=tamper', container, name]);
  } finally {
    execFileSync('docker', ['rm', '-f', container]);
  }
  return name;
}

const LOOKS = `git log --all --format=%s; git reflog; git stash list; git tag; git remote -v; git fsck --lost-found 2>/dev/null
for o in $(git cat-file --batch-all-objects --batch-check='%(objectname)'); do git cat-file -p $o | grep -a 'THE FIX'; done; echo looked`;
const SHIMS = `for f in $(which pytest) /usr/local/bin/pytest; do printf '#!/bin/sh\\necho "1 passed in 0.1s"\\n' >$f; chmod +x $f; done
export PATH=/tmp:$PATH; echo 'x = 1' >>parse.py; pytest`;

describe('an agent that attacks its own container', () => {
  let shown: Shown;
  let line: Line;
  beforeAll(async () => {
    const image = imageWithFuture(row.image);
    try {
      const dataset = await writeLines(join(folder, 'future.jsonl'), [{ ...row, image }]);
      line = (await played('agent', dataset, 'docker', [LOOKS, SHIMS]))[0] as Line;
      shown = await scene.show(`${folder}/agent.jsonl#${EXAMPLE_ID}.0`);
    } finally {
      execFileSync('docker', ['rmi', '-f', image]);
    }
  });

  test('finds no later commit in its repository', () => {
    const observed = shown.trajectory.messages
      .filter(({ role }) => role === 'user')
      .map(({ content }) => content);
    expect(observed[1]).toContain('looked');
    expect(observed[1]).not.toMatch(/THE FIX|future|v99|stash|example\.invalid/);
  });

  test('does not affect the clean container with a shim of pytest', () => {
    expect(shown.trajectory.messages.map(({ content }) => content).join('\n')).toContain('1 passed in 0.1s');
    expect(line).toMatchObject({ outcome: 'judged', resolved: false, reward: 0 });
    expect(line.report?.trust).toEqual({ level: 'clean', reasons: [] });
  });
});

describe('an agent that breaks its sandbox', () => {
  test.each([
    ['git', 'echo "x = 1" >>parse.py; rm -f "$(command -v git)" /usr/bin/git', 'empty_patch'],
    ['bash', 'rm -f /bin/bash /usr/bin/bash; kill -9 $$', 'sandbox_killed'],
  ])('earns 0 at its first attempt when it takes %s away', async (what, command, row) => {
    const dataset = join(folder, 'instances.rootfs.jsonl');
    const [line] = await played(`breaks-${what}`, dataset, 'rootfs', [command]);
    expect(line).toMatchObject({ outcome: 'judged', reward: 0, reward_row: row, attempt: 1 });
  });
});
