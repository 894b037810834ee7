import { existsSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { expect, test } from 'vitest';
import { FAMILY_ROWS } from '../test/familyrows.ts';
import { fileWith, lines, row } from '../test/rows.ts';
import { parseJsonLines } from './jsonl.ts';
import { readDataset } from './read.ts';
import { toInstance } from './row.ts';

const second = row({
  instance_id: 'pallets__flask-2',
  FAIL_TO_PASS: ['t::b'],
  PASS_TO_PASS: ['t::c', 't::d'],
});
const ids = async (path: string, filters = {}) =>
  (await readDataset(path, { filters })).instances.map((one) => one.instance_id);

test('the same rows are the same dataset in every format', async () => {
  const text = lines(row(), second);
  const list = (name: 'FAIL_TO_PASS' | 'PASS_TO_PASS') => [
    { name, data: [row()[name], JSON.stringify(second[name])], type: 'STRING' as const },
  ];
  const columns = ['repo', 'instance_id', 'base_commit', 'patch', 'test_patch', 'problem_statement'];
  const parquet = parquetWriteBuffer({
    columnData: [
      ...[...columns, 'hints_text', 'created_at', 'version'].map((name) => ({
        name,
        data: [row()[name], second[name]],
        type: 'STRING' as const,
      })),
      ...list('FAIL_TO_PASS'),
      ...list('PASS_TO_PASS'),
    ],
  });
  const files = [
    await fileWith('rows.jsonl', text),
    await fileWith('no-newline-at-end.jsonl', text.trimEnd()),
    await fileWith('windows.jsonl', `\uFEFF${text.replaceAll('\n', '\r\n')}\r\n`),
    await fileWith('really-jsonl.json', text),
    await fileWith('rows.jsonl.gz', gzipSync(text)),
    await fileWith('list.json', JSON.stringify([row(), second], null, 2)),
    await fileWith('list.json.gz', gzipSync(JSON.stringify([row(), second]))),
    await fileWith('by-id.json', JSON.stringify({ 'pallets__flask-1': row(), 'pallets__flask-2': second })),
    await fileWith('by-id-pretty.json', JSON.stringify({ 'pallets__flask-1': row(), x: second }, null, 1)),
    await fileWith('rows.parquet', new Uint8Array(parquet)),
  ];
  const read = await Promise.all(files.map((path) => readDataset(path)));
  for (const one of read) {
    expect(one.instances.map((instance) => instance.instance_id)).toEqual([
      'pallets__flask-1',
      'pallets__flask-2',
    ]);
  }
  expect(new Set(read.map((one) => one.sha256)).size).toBe(1);
});

test('parquet lists and timestamps are read as JSON values', async () => {
  const parquet = parquetWriteBuffer({
    columnData: [
      { name: 'instance_id', data: ['a__b-1'], type: 'STRING' },
      { name: 'repo', data: ['a/b'], type: 'STRING' },
      { name: 'base_commit', data: ['c'], type: 'STRING' },
      { name: 'problem_statement', data: ['p'], type: 'STRING' },
      { name: 'image', data: ['ours/a:1'], type: 'STRING' },
      { name: 'FAIL_TO_PASS', data: [JSON.parse('["x"]')], type: 'JSON' },
      { name: 'PASS_TO_PASS', data: [JSON.parse('["y","z"]')], type: 'JSON' },
      { name: 'created_at', data: [new Date('2024-01-02T03:04:05Z')], type: 'TIMESTAMP' },
    ],
  });
  const { instances } = await readDataset(await fileWith('x.parquet', new Uint8Array(parquet)));
  expect(instances[0]).toMatchObject({
    FAIL_TO_PASS: ['x'],
    PASS_TO_PASS: ['y', 'z'],
    created_at: '2024-01-02T03:04:05.000Z',
    family: 'custom',
    image: 'ours/a:1',
  });
});

test('test ids in a parquet list column are read as lists', async () => {
  const texts = ['instance_id', 'repo', 'base_commit', 'problem_statement'];
  const lists = ['FAIL_TO_PASS', 'PASS_TO_PASS'];
  const utf8 = {
    type: 'BYTE_ARRAY' as const,
    converted_type: 'UTF8' as const,
    repetition_type: 'OPTIONAL' as const,
  };
  const parquet = parquetWriteBuffer({
    columnData: [
      ...texts.map((name) => ({ name, data: [row()[name]] })),
      { name: 'FAIL_TO_PASS', data: [['x', 'y']] },
      { name: 'PASS_TO_PASS', data: [[]] },
    ],
    schema: [
      { name: 'root', num_children: 6 },
      ...texts.map((name) => ({ name, ...utf8 })),
      ...lists.flatMap((name) => [
        { name, repetition_type: 'OPTIONAL' as const, num_children: 1, converted_type: 'LIST' as const },
        { name: 'list', repetition_type: 'REPEATED' as const, num_children: 1 },
        { name: 'element', ...utf8 },
      ]),
    ],
  });
  const { instances } = await readDataset(await fileWith('lists.parquet', new Uint8Array(parquet)));
  expect(instances[0]).toMatchObject({ FAIL_TO_PASS: ['x', 'y'], PASS_TO_PASS: [] });
});

test('U+2028 inside a string does not end a line', async () => {
  const path = await fileWith('a.jsonl', lines(row({ problem_statement: 'one\u2028two' })));
  expect((await readDataset(path)).instances[0]?.problem_statement).toBe('one\u2028two');
});

test.each<[string, string | Uint8Array, RegExp]>([
  ['empty.jsonl', '', /the file is empty/],
  ['blank.jsonl', '\n\n', /contains no rows/],
  [
    'cut.jsonl',
    lines(row()).concat('{"instance_id": "x", "re'),
    /line 2: expected a whole JSON object.*truncated/,
  ],
  ['cut.jsonl.gz', gzipSync(lines(row(), second)).subarray(0, 200), /gzip data is cut off or damaged/],
  ['cut.json', JSON.stringify([row()]).slice(0, 100), /not valid JSON.*fetch it again/],
  ['cut.parquet', 'PAR1 and then nothing of use', /parquet file is cut off or damaged/],
  ['list.jsonl', '{"instance_id":"a"}\n[1]\n', /line 2: expected a JSON object, found a list/],
  ['latin1.jsonl', Buffer.from('{"a": "\xe9"}\n', 'latin1'), /line 1: expected UTF-8 text/],
  ['twice.jsonl', lines(row(), row()), /line 2: instance_id:.*pallets__flask-1, which line 1 has too/],
])('%s is refused with a reason', async (name, content, message) => {
  const path = await fileWith(name, content);
  await expect(readDataset(path)).rejects.toThrow(message);
  await expect(readDataset(path)).rejects.toMatchObject({ name: 'UsageError' });
});

test('a line that is too long is refused by its number, and other rows are read', async () => {
  const long = `{"a":"${'x'.repeat(200)}"}`;
  for (const [text, numbers] of [
    [`{"b":1}\n${long}\n{"c":2}\n`, [1, 3]],
    [`${long}\n{"c":2}`, [2]],
    [`{"b":1}\n${long}`, [1]],
  ] as const) {
    for (const step of [1, 7, 64, 1000]) {
      const bytes = Buffer.from(text);
      const pieces = async function* () {
        for (let at = 0; at < bytes.length; at += step) yield bytes.subarray(at, at + step);
      };
      const rows = await Array.fromAsync(parseJsonLines(pieces(), 100));
      const good = rows.filter((one) => 'value' in one).map(({ where }) => where);
      expect(good).toEqual(numbers.map((number) => `line ${number}`));
      expect(rows.filter((one) => 'problem' in one)).toMatchObject([
        { problem: { expected: 'a row of at most 100 bytes', found: 'one of 208 bytes' } },
      ]);
    }
  }
});

test('a missing file and a folder are refused with a remedy', async () => {
  await expect(readDataset('/nowhere/rows.jsonl')).rejects.toThrow(
    '/nowhere/rows.jsonl: no such file; check the path of --dataset',
  );
  await expect(readDataset('/')).rejects.toThrow(/is a folder/);
});

test('one error reports all bad rows, the first twenty in full', async () => {
  const bad = Array.from({ length: 25 }, (_, at) => row({ instance_id: `a__b-${at}`, FAIL_TO_PASS: at }));
  const path = await fileWith('bad.jsonl', lines(row(), ...bad));
  const error = (await readDataset(path).catch((thrown: unknown) => thrown)) as Error;
  expect(error.message.split('\n')).toHaveLength(22);
  expect(error.message).toContain(
    'line 2: FAIL_TO_PASS: expected a list of test ids, or the JSON text of one, found the number 0; ' +
      'export the column as a list of strings',
  );
  expect(error.message).toContain('… and 5 more');
});

test('filters choose by id, repository, expression, tests, chance and order', async () => {
  const rows = Array.from({ length: 20 }, (_, at) =>
    row({
      instance_id: `pallets__flask-${at}`,
      repo: at % 2 ? 'django/django' : 'pallets/flask',
      PASS_TO_PASS: Array.from({ length: at }, (_, test) => `t${test}`),
    }),
  );
  const path = await fileWith('rows.jsonl', lines(...rows));
  expect(await ids(path, { ids: ['pallets__flask-3', 'pallets__flask-1'] })).toEqual([
    'pallets__flask-1',
    'pallets__flask-3',
  ]);
  expect(await ids(path, { repos: ['Django/django'], maxTests: 4 })).toEqual([
    'pallets__flask-1',
    'pallets__flask-3',
  ]);
  expect(await ids(path, { match: /-1\d$/, first: 2 })).toEqual(['pallets__flask-10', 'pallets__flask-11']);
  const drawn = await ids(path, { sample: { count: 5, seed: 1 } });
  expect(drawn).toHaveLength(5);
  const reversed = await fileWith('reversed.jsonl', lines(...rows.toReversed()));
  expect((await ids(reversed, { sample: { count: 5, seed: 1 } })).toSorted()).toEqual(drawn.toSorted());
  expect(await ids(path, { sample: { count: 5, seed: 2 } })).not.toEqual(drawn);
  await expect(ids(path, { ids: ['nope'] })).rejects.toThrow(/has no instance nope; check --ids/);
  await expect(ids(path, { match: /nothing/ })).rejects.toThrow(/none of its 20 rows passes the filters/);
});

test('a bad row that the filters exclude is ignored', async () => {
  const path = await fileWith('rows.jsonl', lines(row({ instance_id: 'a__b-1', PASS_TO_PASS: 3 }), second));
  expect(await ids(path, { ids: ['pallets__flask-2'] })).toEqual(['pallets__flask-2']);
});

const raw = (id: string) => row({ instance_id: id, repo: 'a/b', FAIL_TO_PASS: [], PASS_TO_PASS: [] });

test('ungradable rows are an error with counts by reason, or are omitted and counted', async () => {
  const lego = (id: string) =>
    row({
      instance_id: id,
      image_name: 'jierun/sweb.eval.x86_64.a',
      test_cmd: 'pytest -rA',
      FAIL_TO_PASS: ['t.py::a[1 '],
    });
  const path = await fileWith('mixed.jsonl', lines(row(), raw('a__b-1'), raw('a__b-2'), lego('a__b-3')));
  const error = (await readDataset(path).catch((thrown: unknown) => thrown)) as Error;
  expect(error).toMatchObject({ name: 'UsageError' });
  expect(error.message).toMatch(/3 of 4 rows cannot be graded, .*--skip-ungradable leaves them out/);
  expect(error.message).toMatch(/2: SWE-Gym Raw rows .* \(line 2: FAIL_TO_PASS: /);
  expect(error.message).toMatch(/1: test ids that were cut short \(line 4: /);
  const read = await readDataset(path, { skipUngradable: true });
  expect(read.instances.map((one) => one.instance_id)).toEqual(['pallets__flask-1']);
  expect(read.rows).toBe(4);
  expect([...read.ungradable.values()]).toEqual([2, 1]);
});

test('a malformed row is an error even with --skip-ungradable', async () => {
  const path = await fileWith('bad.jsonl', lines(raw('a__b-1'), row({ base_commit: 7 })));
  await expect(readDataset(path, { skipUngradable: true })).rejects.toThrow(/line 2: base_commit: expected/);
});

test('a file without gradable rows is an error even with --skip-ungradable', async () => {
  const path = await fileWith('raw.jsonl', lines(raw('a__b-1')));
  await expect(readDataset(path, { skipUngradable: true })).rejects.toThrow(
    /none of its 1 rows .*can be graded/,
  );
});

test('only top-level columns of parquet count, and structs are read as objects', async () => {
  const v2 = FAMILY_ROWS['swe-rebench-v2'] ?? {};
  const texts = Object.entries(v2).filter(([, value]) => typeof value === 'string');
  const json = ['install_config', 'FAIL_TO_PASS', 'PASS_TO_PASS'];
  const parquet = parquetWriteBuffer({
    columnData: [
      ...texts.map(([name, value]) => ({ name, data: [value], type: 'STRING' as const })),
      ...json.map((name) => ({ name, data: [v2[name]], type: 'JSON' as const })),
    ],
  });
  const { instances } = await readDataset(await fileWith('v2.parquet', new Uint8Array(parquet)));
  const text = await fileWith('v2.jsonl', lines(v2));
  expect(instances[0]?.plan).toEqual((await readDataset(text)).instances[0]?.plan);
});

test('in a file of several families, the filled columns of a row decide its family', async () => {
  const rows = Object.values(FAMILY_ROWS).filter((one) => one.responses_create_params === undefined);
  const names = new Set(rows.flatMap((one) => Object.keys(one)));
  const nulls = Object.fromEntries([...names].map((name) => [name, null]));
  const family = (one: Record<string, unknown>): string => {
    const read = toInstance('line 1', one, { familyFiles: '/nowhere' });
    return 'instance' in read ? read.instance.family : JSON.stringify(read.problems[0]?.ungradable);
  };
  for (const one of rows) expect(family({ ...nulls, ...one })).toBe(family(one));
});

test('rows without instance_id have the id of their family', async () => {
  const r2e = FAMILY_ROWS['r2e-gym'] ?? {};
  const path = await fileWith('r2e.jsonl', lines(r2e));
  const [first] = await ids(path);
  expect(first).toMatch(/^calc-[0-9a-f]{40}$/);
  expect(await ids(path, { ids: [first] })).toEqual([first]);
  await expect(readDataset(await fileWith('twice.jsonl', lines(r2e, r2e)))).rejects.toThrow(
    /line 2: instance_id:.*which line 1 has too/,
  );
});

const given = new URL('../../../shared/rows/', import.meta.url);
test('real rows of SWE-bench and SWE-Gym are read', async ({ skip }) => {
  skip(!existsSync(given), '../shared/rows is not beside the repository');
  const read = async (name: string) => (await readDataset(new URL(name, given).pathname)).instances;
  expect(await read('verified-mini50.jsonl')).toHaveLength(50);
  expect((await read('lite-test.jsonl'))[0]?.image).toBe(
    'swebench/sweb.eval.x86_64.astropy_1776_astropy-12907:latest',
  );
  expect((await read('swegym-5.jsonl'))[0]).toMatchObject({
    family: 'swegym',
    image: 'xingyaoww/sweb.eval.x86_64.getmoto_s_moto-7365:latest',
  });
});
