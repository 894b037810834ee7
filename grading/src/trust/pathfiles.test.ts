import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { GOLD, instance, replaces } from '../instance.fixture.ts';
import { isPathFile, pathFindings } from './pathfiles.ts';

const SITE = '/opt/miniconda3/envs/testbed/lib/python3.11/site-packages';
const changes = (path: string): string => replaces(path, 'a', 'b');
const entries = (name: string, lines: string[]): string[] => [
  `${SITE}/${name}:`,
  ...lines.map((line) => `${SITE}/${name}:${line}`),
];
const found = (name: string, lines: string[], patch = GOLD, row = instance()) =>
  pathFindings(entries(name, lines), patch, row);

/** The findings of test/editable/run.ts: backend → path below the environment → lines of a .pth. */
const FACTS: Record<string, Record<string, string[] | null>> = JSON.parse(
  readFileSync(new URL('../../fixtures/editable.json', import.meta.url), 'utf8'),
);

describe.each(Object.entries(FACTS))('an editable installation by %s', (_backend, files) => {
  const changed = Object.entries(files).flatMap(([path, lines]) => {
    const at = `/opt/miniconda3/envs/testbed/${path.replace('python3/', 'python3.11/')}`;
    return lines ? [`${at}:`, ...lines.map((line) => `${at}:${line}`)] : [at];
  });

  test('is no finding', () => {
    expect(changed.some((entry) => /\.pth|easy-install/.test(entry))).toBe(true);
    expect(pathFindings(changed, GOLD, instance())).toEqual([]);
  });
});

test.each([
  ['crate-editable.pth', ['import _crate_editable_loader; _crate_editable_loader.init()']],
  ['_editable_skbc_crate.pth', ['import _editable_skbc_crate', '/testbed']],
  [
    'easy-install.pth',
    ['import sys; sys.__plen = len(sys.path)', './lid-1.0-py3.11.egg', '/testbed', `${SITE}/x-1.egg`],
  ],
  ['crate.pth', ['# a comment', '', '/testbed/lib/python ']],
  ['empty.pth', []],
])('%s of other versions, and of others', (name, lines) => {
  expect(found(name, lines)).toEqual([]);
});

test.each([
  ['code', 'crate.pth', 'import os; os.system("true")'],
  ['code behind a tab', 'crate.pth', 'import\tsoft'],
  ['code in a name that is known', '__editable__.crate-1.0.pth', 'import soft'],
  [
    'code behind a loader',
    '__editable__.crate-1.0.pth',
    'import __editable___a_finder; __editable___a_finder.install(); import soft',
  ],
  [
    'two loaders',
    '__editable__.crate-1.0.pth',
    'import __editable___a_finder; __editable___b_finder.install()',
  ],
  ['code in the name of easy_install', 'easy-install.pth', "import sys; sys.path.insert(0, '/tmp')"],
  ['a path elsewhere', 'crate.pth', '/tmp/soft'],
  ['a path that leaves the tree', 'crate.pth', '/testbed/../tmp'],
  ['a path like the tree', 'crate.pth', '/testbed2'],
  ['a relative path', 'crate.pth', '../../../../tmp'],
])('%s is a finding', (_what, name, line) => {
  expect(found(name, ['/testbed', line])).toMatchObject([{ level: 'suspicious' }]);
});

test('an unread path file is a finding, and no change is none', () => {
  expect(pathFindings([`${SITE}/crate.pth`], GOLD, instance())).toMatchObject([{ level: 'suspicious' }]);
  expect(pathFindings([`${SITE}/a:b.pth`], GOLD, instance())).toMatchObject([{ level: 'suspicious' }]);
  expect(pathFindings(undefined, GOLD, instance())).toEqual([]);
  expect(pathFindings([`${SITE}/crate.py`], GOLD, instance())).toEqual([]);
  expect([`${SITE}/x.pth`, `${SITE}/a:b.pth`, `${SITE}/x.py`, '/tmp/x.pth'].map(isPathFile)).toEqual([
    true,
    true,
    false,
    false,
  ]);
});

test.each(['setup.py', 'pyproject.toml', 'meson.build', 'hatch_build.py'])(
  'who changes %s may have changed the loader, unless gold does',
  (path) => {
    const loader = ['import __editable___crate_finder; __editable___crate_finder.install()'];
    const patch = GOLD + changes(path);
    expect(found('__editable__.crate.pth', loader, patch)).toMatchObject([{ level: 'suspicious' }]);
    expect(found('__editable__.crate.pth', loader, patch, instance({ patch }))).toEqual([]);
    expect(found('crate.pth', ['/testbed'], patch)).toEqual([]);
  },
);
