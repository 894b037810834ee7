/** Tests that the benchmarks run and report figures. No test compares the figures, because machines differ. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../temporaryfolder.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const folder = temporaryFolder('bench-test');

const bench = (...args: string[]) =>
  spawnSync(process.execPath, [join(ROOT, 'bench/main.ts'), ...args], { encoding: 'utf8', cwd: ROOT });

it('measures the CPU of rollouts by part, and reports the machine with every sample', () => {
  const file = join(folder, 'cost.json');
  const { status, stdout, stderr } = bench('--quick', '--only', 'cost', '--json', file);
  expect(status, stderr).toBe(0);
  expect(stdout).toContain('Milliseconds of CPU of one rollout');
  const { cost, ...report } = JSON.parse(readFileSync(file, 'utf8'));
  expect(report).toMatchObject({
    format: 'swefarm-bench-1',
    quick: true,
    machine: { cores: expect.any(Number), memory_gib: expect.any(Number), engine: expect.any(String) },
  });
  const measured: string[] = cost.cells.map(
    (cell: { who: string; graded: boolean }) => `${cell.who} ${cell.graded}`,
  );
  expect(measured).toEqual(
    expect.arrayContaining(['floor false', 'docker false', 'floor true', 'docker true']),
  );
  const amount = expect.any(Number);
  const own = { main: amount, threads: amount, redis: amount };
  for (const { ms, samples } of cost.cells)
    expect([ms, samples]).toEqual([expect.objectContaining(own), [expect.objectContaining(own)]]);
  expect(cost.turns).toMatchObject({ main_ms_per_turn: amount, main_ms_per_rollout: amount });
  expect(cost.paced).toMatchObject({ rollouts: 2, turns: 3, worker_ms: amount, sandbox_ms: amount });
}, 900_000);

it('compares a step by its history with the ideal, simulated and real', () => {
  const file = join(folder, 'order.json');
  const { status, stdout, stderr } = bench('--quick', '--only', 'order', '--json', file);
  expect(status, stderr).toBe(0);
  expect(stdout).toContain('Time of a step over its ideal');
  const { rows, real } = JSON.parse(readFileSync(file, 'utf8')).order;
  expect(rows.map(({ nodes, slots }: Record<string, number>) => [nodes, slots])).toEqual([
    ...[16, 16].map((nodes, at) => [nodes, [4, 8][at]]),
    ...[128, 128].map((nodes, at) => [nodes, [1, 2][at]]),
  ]);
  const step = {
    seconds: expect.any(Number),
    ideal_seconds: expect.any(Number),
    over_ideal: expect.any(Number),
  };
  const forecast = { ...step, forecast_seconds: expect.any(Number) };
  expect(real).toEqual({
    ...{ rollouts: 16, slots: 16, before: { ...step, forecast_seconds: null } },
    ...{ given: forecast, longest: forecast },
  });
}, 900_000);

it.each([
  ['--only', 'speed'],
  ['--only', 'scale', '--nodes', '16,many'],
])('refuses an unknown part or count: %s %s', (...args) => {
  const { status, stderr } = bench(...args);
  expect(status).toBe(2);
  expect(stderr).toContain('usage');
});
