/** Tests the benchmark of evaluations with two predictions for each family: both harnesses from PyPI give the verdicts of the farm. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../temporaryfolder.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const folder = temporaryFolder('bench-test');

test('swefarm eval and both harnesses give each patch of four families the same report', () => {
  const file = join(folder, 'eval.json');
  const args = [join(ROOT, 'bench/main.ts'), '--quick', '--only', 'eval', '--json', file];
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', cwd: ROOT });
  expect(status, stderr).toBe(0);
  const { cells, skipped } = JSON.parse(readFileSync(file, 'utf8')).eval;
  expect(skipped).toEqual([]);
  const shown = cells.map(({ family, predictions, beside }: Record<string, unknown>) => [
    family,
    predictions,
    beside,
  ]);
  expect(shown).toEqual([
    ['all in one command', 8, null],
    ['swebench', 2, 'swebench 4.1.0'],
    ['swe-smith', 2, 'swesmith 0.0.9'],
    ['r2e-gym', 2, null],
    ['swe-rebench-v2', 2, null],
  ]);
  for (const { seconds, beside } of cells)
    expect([seconds.ours, seconds.beside]).toEqual([
      [expect.any(Number)],
      beside === null ? [] : [expect.any(Number)],
    ]);
}, 1_800_000);
