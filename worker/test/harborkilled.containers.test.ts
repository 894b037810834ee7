/** The worker of three rollouts of a Harbor task is killed while each rollout is in another phase: each rollout has one result. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { running } from '@swefarm/testkit';
import { expect, test, vi } from 'vitest';
import { openTrial, useMachine } from './installedscene.ts';
import { workerStarter } from './killedworkers.ts';
import { taskOf } from './matrix/harbortasks.ts';
import { RUNTIMES } from './matrix/runtimes.ts';

vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 });

const BEGUN = '/logs/verifier/begun';
/** The verifier of a tree with the file `slow` lasts long enough to be killed. */
const TEST = `#!/bin/bash
: >${BEGUN}
[ -e slow ] && sleep 6
[ "$(cat answer.txt)" = 42 ] && reward=1 || reward=0
echo "$reward" >/logs/verifier/reward.txt
`;
const SOLVE = 'echo 42 >answer.txt';
/** Copying these tests into the container takes long enough to kill the worker before the verifier begins. */
const LARGE = Buffer.alloc(8 * 1024 ** 2).toString('base64');
/** The agents of three rollouts. When the last ends, the first still runs a command, and the second is graded. */
const AGENTS = [
  running(SOLVE, 'sleep 8; echo rested'),
  running(SOLVE, ': >slow; echo ready'),
  running(SOLVE, 'sleep 4; echo last'),
];

/** Returns the rollouts whose verifier has begun, by the files of their containers. */
function begun(runtime: string, scratch: string, rollouts: readonly string[]): boolean[] {
  const output = (program: string, ...args: string[]) =>
    execFileSync(program, args, { encoding: 'utf8' }).split('\n').filter(Boolean);
  if (runtime !== 'rootfs')
    return rollouts.map((id) =>
      output('docker', 'ps', '-q', '--filter', `label=swefarm.rollout=${id}`).some((container) =>
        output('docker', 'diff', container).includes(`A ${BEGUN}`),
      ),
    );
  const owners = output('find', scratch, '-path', `*/upper-root${BEGUN}`).map((path) =>
    readFileSync(path.replace(`upper-root${BEGUN}`, 'owner.json'), 'utf8'),
  );
  return rollouts.map((id) => owners.some((owner) => owner.includes(`"${id}"`)));
}

const MACHINES = RUNTIMES.map((name) => ({ name, machine: useMachine(name) }));

test.each(MACHINES)(
  'kill -9 of the worker in the agent phase, in the verifier and between leaves one result each, on $name',
  async ({ name, machine }) => {
    const opened = await machine();
    const script = { conversations: [{ variants: AGENTS }] };
    const { harbor, ...instance } = taskOf(TEST);
    if (!harbor) throw new Error('not a Harbor task');
    const files = { ...harbor.files, 'tests/large': { base64: LARGE, executable: false } };
    const trial = await openTrial(opened, {
      ...{ mini: true, server: { script } },
      instance: { ...instance, harbor: { ...harbor, files } },
    });
    const { farm, prefix, server } = trial;
    const run = { ...trial.run, group_size: AGENTS.length };
    await farm.runs.create(run, [trial.instance], []);
    const ids = await farm.groups.rollouts(run.run_id);
    const workers = workerStarter(opened, name, prefix, AGENTS.length);
    await farm.jobs.enqueue(run, ids);
    const first = workers.start();
    const over = (at: number, stage: string) =>
      new RegExp(`"rollout_id":"${ids[at]}"[^\\n]*"stage":"${stage}"[^\\n]*stage over`);
    await first.until(over(2, 'agent'));
    // A stopped worker starts no verifier while the test looks at the containers.
    first.kill('SIGSTOP');
    const log = first.stdout() + first.stderr();
    const verifiers = begun(name, workers.scratch, ids);
    first.kill('SIGKILL');
    await first.exit;
    expect(ids.map((_, at) => over(at, 'agent').test(log))).toEqual([false, true, true]);
    expect(ids.map((_, at) => over(at, 'evaluation').test(log))).toEqual([false, false, false]);
    expect(verifiers).toEqual([false, true, false]);

    const second = workers.start();
    const committed = async () => (await farm.results.counts(run.run_id)).committed;
    await expect.poll(committed, { timeout: 180_000, interval: 200 }).toBe(AGENTS.length);
    second.kill('SIGTERM');
    expect(await second.exit).toBe(0);
    const { results } = await farm.results.read(run.run_id, '0');
    expect(results.map(({ result }) => result.rollout_id).toSorted()).toEqual(ids.toSorted());
    for (const { result } of results)
      expect(result).toMatchObject({ outcome: 'judged', reward: 1, attempt: 2, turns: 3, failure: null });
    // The second attempts repeat the recorded turns, and ask only for answers that the first attempts had not received.
    expect(server.stats().answered).toBeLessThanOrEqual(3 * AGENTS.length + 1);
    expect((await opened.runtime.listOwned()).filter(({ owner }) => ids.includes(owner.rollout_id))).toEqual(
      [],
    );
  },
);
