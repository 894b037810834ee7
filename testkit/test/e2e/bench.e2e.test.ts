/** The benchmarks run and say what they measured; how fast this machine is today is nobody's business here. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'swefarm-bench-test-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const bench = (...args: string[]) =>
  spawnSync(process.execPath, [join(ROOT, 'bench/main.ts'), ...args], { encoding: 'utf8', cwd: ROOT });

const numbers = (count: number) => {
  const list = Array.from({ length: count }, () => expect.any(Number));
  return { p50: expect.any(Number), p95: expect.any(Number), samples: list };
};

it('measures the shell in turns with its floors, with the machine and every sample', () => {
  const file = join(folder, 'shell.json');
  const { status, stdout, stderr } = bench('--quick', '--only', 'shell', '--reps', '1', '--json', file);
  expect(status, stderr).toBe(0);
  expect(stdout).toContain('exec/ours');
  const report = JSON.parse(readFileSync(file, 'utf8'));
  expect(report).toMatchObject({
    format: 'swefarm-bench-1',
    quick: true,
    machine: { cores: expect.any(Number), memory_gib: expect.any(Number), engine: expect.any(String) },
    shell: { seconds: expect.any(Number) },
  });
  const cases = report.shell.results.filter((one: { runtime: string }) => one.runtime === 'docker');
  expect(cases.map((one: { activation: string }) => one.activation)).toEqual(['none', '200 ms']);
  for (const one of cases) {
    expect(one.ms).toEqual({ ours: numbers(20), exec: numbers(20), bare: numbers(20) });
    expect(one.over_bare_p50_ms).toEqual(expect.any(Number));
  }
});

it('tells the CPU of a rollout by part, of its turns, and of one whose model takes its time', () => {
  const file = join(folder, 'cost.json');
  const { status, stdout, stderr } = bench('--quick', '--only', 'cost', '--json', file);
  expect(status, stderr).toBe(0);
  expect(stdout).toContain('Milliseconds of CPU of one rollout');
  const { cost } = JSON.parse(readFileSync(file, 'utf8'));
  const told: string[] = cost.cells.map(
    (cell: { who: string; graded: boolean }) => `${cell.who} ${cell.graded}`,
  );
  expect(told).toEqual(expect.arrayContaining(['floor false', 'docker false', 'floor true', 'docker true']));
  const amount = expect.any(Number);
  const own = { main: amount, threads: amount, redis: amount };
  for (const { ms, samples } of cost.cells)
    expect([ms, samples]).toEqual([expect.objectContaining(own), [expect.objectContaining(own)]]);
  expect(cost.turns).toMatchObject({ main_ms_per_turn: amount, main_ms_per_rollout: amount });
  expect(cost.paced).toMatchObject({ rollouts: 2, turns: 3, worker_ms: amount, sandbox_ms: amount });
}, 900_000);

it.each([
  ['--only', 'speed'],
  ['--only', 'scale', '--nodes', '16,many'],
])('refuses what it does not know: %s %s', (...args) => {
  const { status, stderr } = bench(...args);
  expect(status).toBe(2);
  expect(stderr).toContain('usage');
});
