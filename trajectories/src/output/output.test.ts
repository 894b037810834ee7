import { appendFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { expect, test } from 'vitest';
import { aLine } from '../../test/result.ts';
import { openOutputFile, readOutputRun, requireNewOutput, runFile } from './output.ts';

test('lines and cursor are kept; an incomplete last line is removed', async () => {
  const path = join(temporaryFolder('output'), 'deep', 'out.jsonl');
  {
    await using output = await openOutputFile(path, 'r1');
    await output.append([aLine()], '5-0');
  }
  await appendFile(path, '{"run_id":"r1","rollout_id":"r1.a__b-1.1","out');
  await using output = await openOutputFile(path, 'r1');
  expect([...output.lines.keys()]).toEqual(['r1.a__b-1.0']);
  expect(output.cursor).toBe('5-0');
  await output.append([aLine({ rollout_id: 'r1.a__b-1.1' })], '6-0');
  const written = (await readFile(path, 'utf8')).trimEnd().split('\n');
  expect(written.map((line) => JSON.parse(line).rollout_id)).toEqual(['r1.a__b-1.0', 'r1.a__b-1.1']);
});

test('with a lost or foreign cursor the output is read from the start', async () => {
  const path = join(temporaryFolder('output'), 'out.jsonl');
  {
    await using output = await openOutputFile(path, 'r1');
    await output.append([aLine()], '5-0');
  }
  await writeFile(`${path}.cursor.json`, '{"run_id":"other","last_id":"9-0"}');
  await using again = await openOutputFile(path, 'r1');
  expect(again.cursor).toBe('0');
});

test('an existing output is not overwritten', async () => {
  const dir = temporaryFolder('output');
  const path = join(dir, 'out.jsonl');
  await requireNewOutput(path);
  await writeFile(path, '');
  await requireNewOutput(path);
  await writeFile(path, 'x\n');
  await expect(requireNewOutput(path, 'pass --resume')).rejects.toThrow(
    /exists already; pass --resume, or choose another/,
  );
  await expect(openOutputFile(path, 'r1')).rejects.toThrow(/is no line of an output/);
  await writeFile(path, 'someone else, without a line feed');
  await expect(openOutputFile(path, 'r1')).rejects.toThrow(/is no output of swefarm/);
  expect(await readFile(path, 'utf8')).toBe('someone else, without a line feed');
});

test('lines of another run, folders and damaged records are refused', async () => {
  const dir = temporaryFolder('output');
  const path = join(dir, 'out.jsonl');
  {
    await using output = await openOutputFile(path, 'r1');
    await output.append([aLine()], '1-0');
  }
  await expect(openOutputFile(path, 'r2')).rejects.toThrow(/belongs to run r1, not to r2/);
  await expect(openOutputFile(dir, 'r1')).rejects.toThrow(/is a folder/);
  await writeFile(runFile(path), '{');
  await expect(readOutputRun(path)).rejects.toThrow(/is damaged/);
  expect(await readOutputRun(join(dir, 'other.jsonl'))).toBeNull();
});
