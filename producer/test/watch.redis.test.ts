import { testConfig, testFarm } from '@swefarm/runs/test/farm.ts';
import { madeLiveTurn, madeTrajectory, makeRun, until } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { watchFarm } from '../src/view/watching.ts';
import { exited, run, start } from './cli.ts';
import { farmVariables } from './scene.ts';

const HOSTILE = '\u001b]0;owned\u0007\u001b[2J';

async function farmWith(options: Parameters<typeof makeRun>[1]) {
  const config = testConfig();
  const farm = await testFarm(config);
  const made = await makeRun(farm, options);
  const env = farmVariables(config);
  return { farm, made, env };
}

test('watch sees what changes: rates, groups, where rollouts are, failures with their reasons', async () => {
  const { farm, made } = await farmWith({ instances: 100, groupSize: 4, committed: 398 });
  const look = watchFarm(farm);
  const first = await look();
  expect(first.runs).toMatchObject([{ committed: 398, groups: 100, groups_done: 99, per_minute: null }]);
  expect(first.failures.length).toBeGreaterThan(0);
  expect(first.failures[0]?.message).toMatch(/\w/);
  await made.commit(398);
  await made.commit(399);
  await farm.registry.beat({
    ...{ worker: 'w1', node: 'n1', runtime: 'host', slots: 2, active: 1 },
    ...{ started_at: 1, metrics: null, paused: null },
  });
  await farm.live.mark({
    ...{ rollout_id: made.rollouts[0] ?? '', attempt: 1, worker: 'w1', node: 'n1', stage: 'agent' },
    ...{ turns: 1, claimed_at: 1, at: 1 },
  });
  const second = await look();
  expect(second.runs).toMatchObject([{ committed: 400, groups_done: 100, running: 1 }]);
  expect(second.runs[0]?.per_minute).toBeGreaterThan(0);
  expect(second.stages).toEqual({ agent: 1 });
  expect(second.failures).toHaveLength(second.runs[0]?.failed ?? -1);
});

test('watch in a pipe is plain lines; --json is for scripts', async () => {
  const { env } = await farmWith({ instances: 2, groupSize: 2 });
  const plain = await run(['watch', '--once'], env);
  expect(plain).toMatchObject({ code: 0 });
  expect(plain.stdout).toContain('4/4');
  const json = await run(['watch', '--once', '--json'], env);
  expect(JSON.parse(json.stdout)).toMatchObject({ runs: [{ committed: 4 }], workers: [] });
});

test('logs follow a rollout to its end, whatever it writes', { timeout: 90_000 }, async () => {
  const { farm, made, env } = await farmWith({ instances: 1, groupSize: 1, committed: 0, artifacts: 1 });
  const [id = ''] = made.rollouts;
  const trajectory = madeTrajectory(2, 0, HOSTILE);
  const following = start(['logs', id, '--follow'], env);
  await until(() => following.stderr().includes('waits in the queue'));
  await farm.live.turn(id, madeLiveTurn(trajectory, 0), 8);
  await farm.live.turn(id, madeLiveTurn(trajectory, 1), 8);
  await made.commit(0);
  const { code, stdout, stderr } = await following.ended;
  expect({ code, output: stderr.includes('judged') || stderr.includes('failed') }).toEqual({
    code: 0,
    output: true,
  });
  expect(stdout).toContain('turn 1 (');
  expect(stdout).toContain('turn 2 (');
  expect(stdout).toContain('$ ls -la');
  expect(stdout).not.toContain('\u001b');
  const unknown = await run(['logs', `${made.record.run_id}.nothing.0`], env);
  expect(unknown).toMatchObject({ code: 2 });
});

test('show says of a rollout without a result what shows it', async () => {
  const { made, env } = await farmWith({ instances: 1, groupSize: 1, committed: 0 });
  const shown = await run(['show', made.rollouts[0] ?? ''], env);
  expect(shown).toMatchObject(exited(2, `swefarm logs ${made.rollouts[0]} --follow`));
});
