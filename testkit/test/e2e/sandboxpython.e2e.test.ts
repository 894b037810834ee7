/** Tests the Python package `swefarm` against a farm whose gateway and worker are killed in the middle of a command. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { startFarm } from './pythonfarm.ts';

test('a sandbox in Python survives a killed gateway and reports a killed worker', async () => {
  await using stack = new AsyncDisposableStack();
  const { folder, row, python, replaceGateway, replaceWorker } = await startFarm(stack);
  await writeFile(join(folder, 'row.json'), JSON.stringify(row));
  const child = python([join(import.meta.dirname, 'sandbox.py'), 'row.json']);
  const stderr = text(child.stderr);
  const faults: Record<string, () => Promise<void>> = { gateway: replaceGateway, worker: replaceWorker };
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line);
    await faults[line]?.();
  }
  expect(await stderr).toBe('');
  expect(lines).toEqual(['gateway', 'worker', 'done']);
});
