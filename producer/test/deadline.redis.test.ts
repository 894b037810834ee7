/** Tests deadlines from a machine whose clock is a day off: a deadline is a time of the farm's clock, which is the clock of Redis. */
import { writeFile } from 'node:fs/promises';
import { redisUrl, testConfig, testFarm } from '@swefarm/runs/test/farm.ts';
import { newId } from '@swefarm/shared';
import { shiftedClock, words } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { fakeWorker, type Ran, start } from './cli.ts';
import { farmOptions, flaskRows } from './scene.ts';

const HALF_AN_HOUR = 30 * 60_000;

async function prepare(offset: string) {
  const { folder, dataset, output } = await flaskRows(1);
  const prefix = newId();
  const farm = await testFarm(testConfig(redisUrl(), prefix));
  const common = words`--dataset ${dataset} --agent noop --state-dir ${folder} ${farmOptions(prefix)}`;
  const env = await shiftedClock(offset);
  return {
    farm,
    output,
    run: (command: string, ...more: string[]): Promise<Ran> =>
      start([command, ...common, ...more], env).ended,
    /** Returns the milliseconds until the deadline of the only run, by the farm's clock. */
    left: async (): Promise<number> => {
      const [run] = await farm.runs.list();
      return (run?.deadline_at ?? Number.NaN) - (await farm.clock.ask());
    },
  };
}

test.each(['+1d', '-1d'])(
  'with a clock that is %s off, a span counts from now and an instant is absolute',
  async (offset) => {
    const at = await prepare(offset);
    const now = await at.farm.clock.ask();
    const iso = (ms: number): string => new Date(now + ms).toISOString();
    const over = await at.run('submit', '--deadline', iso(-60_000));
    expect(over).toMatchObject({ code: 2, stdout: '' });
    expect(over.stderr).toMatch(/--deadline: .* has passed: by the clock of Redis it is/);
    expect(await at.farm.runs.list()).toEqual([]);

    expect(await at.run('submit', '--deadline', '30m')).toMatchObject({ code: 0 });
    const left = await at.left();
    expect(left).toBeLessThanOrEqual(HALF_AN_HOUR);
    expect(left).toBeGreaterThan(HALF_AN_HOUR - 120_000);
    const [first] = await at.farm.runs.list();
    await at.farm.runs.remove(first?.run_id ?? '');
    expect(await at.run('submit', '--deadline', iso(HALF_AN_HOUR))).toMatchObject({ code: 0 });
    expect((await at.farm.runs.list())[0]?.deadline_at).toBe(now + HALF_AN_HOUR);
  },
);

test('a rollout from a machine a day behind is not over before it begins', async () => {
  const at = await prepare('-1d');
  const worker = ['--worker-command', fakeWorker('ok'), '--output', at.output];
  expect(await at.run('rollout', '--deadline', '30m', ...worker)).toMatchObject({ code: 0 });
  const left = await at.left();
  expect(left).toBeLessThanOrEqual(HALF_AN_HOUR);
  expect(left).toBeGreaterThan(HALF_AN_HOUR - 120_000);
});

test('a file gives a deadline as a span, a time or a number, and one that has passed is refused', async () => {
  const at = await prepare('-1d');
  const submit = async (deadline: unknown): Promise<Ran> => {
    const path = `${at.output}.run.yaml`;
    await writeFile(path, `deadline_at: ${JSON.stringify(deadline)}\n`);
    return await at.run('submit', '--run-config', path);
  };
  const now = await at.farm.clock.ask();
  for (const past of [now - 60_000, 7200, new Date(now - 60_000).toISOString()])
    expect(await submit(past)).toMatchObject({ code: 2, stderr: expect.stringContaining('has passed') });
  expect(await submit('soon')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('deadline_at: expected a time such as 30m'),
  });
  expect(await at.farm.runs.list()).toEqual([]);
  for (const given of ['30m', now + HALF_AN_HOUR, new Date(now + HALF_AN_HOUR).toISOString()]) {
    expect(await submit(given)).toMatchObject({ code: 0 });
    expect(Math.abs((await at.left()) - HALF_AN_HOUR)).toBeLessThan(120_000);
    const [run] = await at.farm.runs.list();
    await at.farm.runs.remove(run?.run_id ?? '');
  }
});
