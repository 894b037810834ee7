/** Tests that an external driver has the same folder, activation, variables and hidden paths of an environment as the farm's agents. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeFamilyInstances } from '../../src/families/instances.ts';
import { commitTree, headOf, writeTree } from '../../src/repository.ts';
import { startSessions } from './sessiondriver.ts';

const MEND = "printf 'def add(a, b):\\n    return a + b\\n' >calc.py";

/** Makes a row with all fields of an environment. Its commit contains the answer. */
async function ownRow(folder: string): Promise<Record<string, unknown>> {
  const tree = join(folder, 'own');
  const repository = join(tree, 'srv/depot');
  await writeTree(tree, { 'answers/calc.txt': 'a + b\n' });
  await writeTree(repository, { 'calc.py': 'def add(a, b):\n    return a + b\n' });
  return {
    ...{
      instance_id: 'own__depot-1',
      repo: 'own/depot',
      base_commit: headOf(commitTree(repository, 'THE FIX')),
    },
    ...{ image: `host+dir:${tree}`, problem_statement: 'add subtracts.' },
    ...{ FAIL_TO_PASS: [], PASS_TO_PASS: [] },
    environment: {
      workdir: '/srv/depot',
      activate: 'CRATES=7; export CRATES',
      env: { DEPOT: 'north' },
      setup: [{ name: 'put the bug in', script: "sed -i 's/a + b/a - b/' calc.py" }],
      hidden: ['/answers'],
      history: 'replaced',
    },
    plan: {
      grader: 'own-1',
      apply: [{ name: 'git apply', argv: ['git', 'apply', '/tmp/patch.diff'] }],
      script:
        'cd /srv/depot && test -e /answers/calc.txt && test "$DEPOT" = north && python3 -c "from calc import add; assert add(1, 2) == 3"',
      outcomes: { from: 'exit_code' },
      verdict: { rule: 'exit_code' },
    },
  };
}

test('a session has environment, hidden paths and plan of its instance', async () => {
  await using stack = new AsyncDisposableStack();
  const { scene, gateway, open, run: runCommand, submit } = await startSessions(stack, 3);
  const trees = join(scene.folder, 'trees');
  const families = await makeFamilyInstances(trees, undefined, ['r2e-gym', 'swe-bench-pro']);
  const worker = await scene.worker`--worker-id ${`environment${process.pid}`}`;

  const run = async (id: string, seq: number, command: string): Promise<string> => {
    const answer = await runCommand(id, seq, command);
    expect(answer, JSON.stringify(answer)).toMatchObject({ state: 'answered', seq });
    return String(answer.observation);
  };
  const resolved = { result: { outcome: 'judged', resolved: true, reward: 1 } };

  const own = await open('own', await ownRow(scene.folder));
  const seen = await run(
    own,
    1,
    `pwd; echo "[$DEPOT $CRATES]"; cat calc.py; ls -d /answers; git log --format=%s --all; git status --short
for o in $(git cat-file --batch-all-objects --batch-check='%(objectname)'); do git cat-file -p $o; done`,
  );
  expect(seen).toContain('/srv/depot\n[north 7]\n');
  expect(seen).toContain('return a - b');
  expect(seen).not.toMatch(/a \+ b|THE FIX|^\/answers$/m);
  await run(own, 2, MEND);
  expect(await submit(own)).toMatchObject(resolved);

  const workdirs = { 'r2e-gym': '/testbed', 'swe-bench-pro': '/app' };
  for (const [name, { row, fix }] of families) {
    const id = await open(name, row);
    const looked = await run(
      id,
      1,
      `pwd; ls -A; ls -A /; git log --all --format='%H %s'; git tag; env; hostname
for o in $(git cat-file --batch-all-objects --batch-check='%(objectname)'); do git cat-file -p $o | grep -a 'a + b'; done`,
    );
    expect(looked, name).toContain(`<output>\n${workdirs[name as keyof typeof workdirs]}\n`);
    expect(looked, name).not.toMatch(/a \+ b|THE FIX|v99|r2e_tests|run_tests/);
    expect(looked, name).not.toContain(fix);
    await run(id, 2, MEND);
    expect(await submit(id), name).toMatchObject(resolved);
  }

  expect(await worker.stop(), worker.stderr()).toBe(0);
  expect(await gateway.stop()).toBe(0);
});
