import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { expect, test } from 'vitest';
import { fileWith, lines, row } from '../../test/rows.ts';
import { parseCriterion } from './expression.ts';
import { inspectDataset } from './inspect.ts';
import type { VerbatimRow } from './rows.ts';
import { distinctRows, drawSample, parseParts, rowFilter, splitRows } from './select.ts';
import { openVerbatim } from './verbatim.ts';
import { writeRows } from './write.ts';

const many = (count: number, over: (at: number) => Record<string, unknown> = () => ({})) =>
  Array.from({ length: count }, (_, at) => row({ instance_id: `pallets__flask-${at}`, ...over(at) }));

async function textsOf(path: string): Promise<string[]> {
  const texts: string[] = [];
  for await (const one of (await openVerbatim(path)).rows()) texts.push(one.text());
  return texts;
}

async function converted(from: string, name: string): Promise<string> {
  const to = join(dirname(from), name);
  const file = await openVerbatim(from);
  await writeRows(to, { rows: file.rows, parquet: file.parquet });
  return to;
}

test('JSON rows survive JSONL, JSON, gzip and parquet; parquet makes absent columns null', async () => {
  const cell = fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.maxSafeInteger(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.boolean(),
    fc.array(fc.string(), { maxLength: 3 }),
    fc.jsonValue({ maxDepth: 2 }),
  );
  const record = fc.dictionary(fc.constantFrom('a', 'b', 'ü "x', 'FAIL_TO_PASS'), cell);
  await fc.assert(
    fc.asyncProperty(fc.array(record, { minLength: 1, maxLength: 6 }), async (records) => {
      const rows = records.map((one, at) => ({ instance_id: `i-${at}`, ...one }));
      const source = await fileWith('rows.jsonl', lines(...rows));
      const exact = rows.map((one) => JSON.stringify(one));
      expect(await textsOf(await converted(source, 'x.json'))).toEqual(exact);
      expect(await textsOf(await converted(join(dirname(source), 'x.json'), 'y.jsonl.gz'))).toEqual(exact);
      const parquet = await converted(source, 'z.parquet');
      const names = [...new Set(rows.flatMap((one) => Object.keys(one)))];
      const filled = rows.map((one) => ({
        ...Object.fromEntries(names.map((name) => [name, null])),
        ...one,
      }));
      const back = (await textsOf(await converted(parquet, 'z.jsonl'))).map((text) => JSON.parse(text));
      expect(back).toEqual(JSON.parse(JSON.stringify(filled)));
      expect(await textsOf(await converted(parquet, 'again.parquet'))).toEqual(await textsOf(parquet));
    }),
    { numRuns: 25, seed: 19 },
  );
});

test('a JSON list preserves every digit, and entries of an object get their key as id', async () => {
  const list = await fileWith(
    'a.json',
    '[ {"instance_id": "i", "n": 12345678901234567890, "x": 1.0, "t": "a  b"} ]',
  );
  expect(await textsOf(list)).toEqual(['{"instance_id":"i","n":12345678901234567890,"x":1.0,"t":"a  b"}']);
  const entries = await fileWith('b.json', '{\n "i-1": {"n": 1.50}, "i-2": {}\n}');
  expect(await textsOf(entries)).toEqual(['{"instance_id":"i-1","n":1.50}', '{"instance_id":"i-2"}']);
});

test('parquet preserves 64-bit integers and microseconds; lossy types are refused by column', async () => {
  const at = 1_700_000_000_123_456n;
  const bytes = parquetWriteBuffer({
    columnData: [
      { name: 'instance_id', data: ['a'] },
      { name: 'big', data: [2n ** 62n + 1n] },
      { name: 'at', data: [at] },
    ],
    schema: [
      { name: 'root', num_children: 3 },
      { name: 'instance_id', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'REQUIRED' },
      { name: 'big', type: 'INT64', repetition_type: 'OPTIONAL' },
      { name: 'at', type: 'INT64', repetition_type: 'OPTIONAL', converted_type: 'TIMESTAMP_MICROS' },
    ],
  });
  const path = await fileWith('a.parquet', new Uint8Array(bytes));
  const text = '{"instance_id":"a","big":4611686018427387905,"at":"2023-11-14T22:13:20.123456Z"}';
  expect(await textsOf(path)).toEqual([text]);
  expect(await textsOf(await converted(path, 'b.parquet'))).toEqual([text]);
  const uuid = parquetWriteBuffer({
    columnData: [{ name: 'u', data: ['00000000-0000-0000-0000-000000000000'], type: 'UUID' }],
  });
  await expect(openVerbatim(await fileWith('u.parquet', new Uint8Array(uuid)))).rejects.toThrow(
    /column u is of parquet's type UUID/,
  );
});

test('a damaged row is named, and the old file stays', async () => {
  const bad = await fileWith('bad.jsonl', `${lines(row())}{"instance_id": \n[1]\n`);
  const out = await fileWith('out.jsonl', 'before\n');
  const file = await openVerbatim(bad);
  await expect(writeRows(out, { rows: file.rows, parquet: null })).rejects.toThrow(
    /2 problems.*line 2.*line 3/s,
  );
  expect(await readFile(out, 'utf8')).toBe('before\n');
});

test('a filter copies the rows that pass byte for byte', async () => {
  const text = lines(
    ...many(6, (at) => ({ FAIL_TO_PASS: JSON.stringify(Array(at).fill('t')), PASS_TO_PASS: '["p"]' })),
  );
  const file = await openVerbatim(await fileWith('a.jsonl', text));
  const passes = rowFilter('a', {
    options: {},
    criterion: parseCriterion(
      'between(len(FAIL_TO_PASS), 2, 4) && tests <= 4 && gradable && family == "swebench"',
    ),
  });
  async function* rows(): AsyncGenerator<VerbatimRow> {
    for await (const one of file.rows()) if (passes(one)) yield one;
  }
  const out = await fileWith('out.jsonl.gz', '');
  expect(await writeRows(out, { rows, parquet: null })).toBe(2);
  expect(gunzipSync(await readFile(out)).toString()).toBe(`${text.split('\n').slice(2, 4).join('\n')}\n`);
});

test('a sample and a split do not depend on the order of the file', async () => {
  const rows = many(40, (at) => ({ repo: `o/r${at % 4}` }));
  const ids = async (order: typeof rows, choose: (path: string) => Promise<Set<string>>) => {
    const path = await fileWith('a.jsonl', lines(...order));
    const chosen = await choose(path);
    const found: string[] = [];
    for await (const one of (await openVerbatim(path)).rows()) {
      if (chosen.has(one.where)) found.push(String(one.value.instance_id));
    }
    return found.toSorted();
  };
  const sample = async (path: string) =>
    drawSample(await openVerbatim(path), { count: 3, seed: 7, perRepository: true });
  const drawn = await ids(rows, sample);
  expect(drawn).toHaveLength(12);
  expect(await ids(rows.toReversed(), sample)).toEqual(drawn);
  const test_ = (by: 'instance' | 'repo') => async (path: string) => {
    const parts = await splitRows(await openVerbatim(path), parseParts('train=3,test=1'), by, 1);
    return new Set([...parts].flatMap(([where, part]) => (part === 'test' ? [where] : [])));
  };
  const heldOut = await ids(rows, test_('instance'));
  expect(heldOut).toHaveLength(10);
  expect(await ids(rows.toReversed(), test_('instance'))).toEqual(heldOut);
  const repository = await ids(rows, test_('repo'));
  expect(new Set(repository.map((id) => Number(id.split('-')[1]) % 4)).size).toBe(1);
});

test('equal duplicates are dropped; different ones are an error unless one is chosen', async () => {
  const first = await fileWith('1.jsonl', lines(...many(3)));
  const second = await fileWith(
    '2.jsonl',
    lines(...many(2), row({ instance_id: 'pallets__flask-2', patch: 'x' })),
  );
  const files = [await openVerbatim(first), await openVerbatim(second)];
  await expect(distinctRows(files, { keep: 'error', columns: null })).rejects.toThrow(
    /2\.jsonl: line 3 and .*1\.jsonl: line 3: pallets__flask-2/,
  );
  const distinct = await distinctRows(files, { keep: 'last', columns: null });
  expect(distinct).toMatchObject({ equal: 2, different: 1 });
  expect(distinct.unique.map((one) => [...one])).toEqual([[], ['line 1', 'line 2', 'line 3']]);
  const byPatch = await distinctRows(files, { keep: 'first', columns: ['patch'] });
  expect(byPatch.unique.map((one) => one.size)).toEqual([1, 1]);
});

test('an inspection counts columns, repositories, tests, and ungradable rows by reason', async () => {
  const path = await fileWith(
    'a.jsonl',
    lines(
      ...many(3),
      row({ repo: 'who/knows', instance_id: 'who__knows-1' }),
      row({ instance_id: 'pallets__flask-1', patch: '' }),
    ),
  );
  const facts = await inspectDataset(await openVerbatim(path));
  expect(facts).toMatchObject({
    rows: 5,
    gradable: 4,
    doubled: ['pallets__flask-1'],
    families: { swebench: 4 },
    repositories: { 'pallets/flask': 4, 'who/knows': 1 },
    without: { patch: 1, problem_statement: 0, FAIL_TO_PASS: 0, image: 1 },
    tests: { FAIL_TO_PASS: { least: 1, median: 1, most: 1 } },
  });
  expect(facts.columns.FAIL_TO_PASS).toEqual({ filled: 5, types: { text: 5 } });
  expect(Object.entries(facts.ungradable)).toEqual([
    [expect.stringMatching(/image: expected an image column/), { rows: 1, example: 'line 4 (who__knows-1)' }],
  ]);
});

test("SWE-Gym Raw is ungradable for lack of images and tests, also in SWE-Gym's repositories", async () => {
  const raw = (repo: string, at: number) => ({
    ...{
      instance_id: `raw__${at}-1`,
      repo,
      base_commit: 'c0ffee',
      patch: 'diff --git a/x b/x\n',
      test_patch: '',
    },
    ...{ problem_statement: 'p', hints_text: '', created_at: '2020-01-01T00:00:00Z' },
  });
  const path = await fileWith('raw.jsonl', lines(raw('who/knows', 0), raw('pandas-dev/pandas', 1)));
  const facts = await inspectDataset(await openVerbatim(path));
  expect(facts).toMatchObject({
    rows: 2,
    gradable: 0,
    repositories: { 'who/knows': 1, 'pandas-dev/pandas': 1 },
    without: { patch: 0, problem_statement: 0, FAIL_TO_PASS: 2, image: 2 },
  });
  expect(facts.ungradable).toEqual({
    'SWE-Gym Raw rows have no image and no verified tests': { rows: 2, example: 'line 1 (raw__0-1)' },
  });
});

test('a large file needs little memory', async () => {
  const path = await fileWith('large.jsonl', '');
  const one = `${JSON.stringify(row({ patch: 'x'.repeat(50_000) }))}\n`;
  await writeFile(
    path,
    Array.from({ length: 80 }, () => one.repeat(50)),
  );
  const before = process.memoryUsage().rss;
  const file = await openVerbatim(path);
  await writeRows(join(dirname(path), 'out.jsonl.gz'), { rows: file.rows, parquet: null });
  expect(process.memoryUsage().rss - before).toBeLessThan(150 * 1024 ** 2);
});
