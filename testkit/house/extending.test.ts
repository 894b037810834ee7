/** Tests that each part in a registry has the tests and docs that docs/extending.md requires. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import {
  agentsWith,
  DatasetFamily,
  FAILURES,
  RUNTIME_NAMES,
  TOOL_PARSERS,
  WORKER_METRICS,
} from '@swefarm/shared';
import { expect, test } from 'vitest';
import { ROOT, readRepository, WORKSPACES } from './tree.ts';

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const tree = readRepository();
const sources = (folder: string): string =>
  tree.flatMap(({ path, text, isTest }) => (path.startsWith(folder) && !isTest ? [text] : [])).join('\n');
const PAGES = ['README.md', 'SECURITY.md', 'ARCHITECTURE.md', 'GLOSSARY.md', 'CONTRIBUTING.md'];
const FOLDERS = ['docs', 'slurm', 'helm', 'bench', 'examples', ...WORKSPACES];
const pages = [
  ...PAGES,
  ...FOLDERS.flatMap((folder) =>
    execFileSync('git', ['ls-files', `${folder}/*.md`, `${folder}/README.md`], {
      cwd: ROOT,
      encoding: 'utf8',
    })
      .split('\n')
      .filter((path) => path !== '' && !path.startsWith('examples/problems/')),
  ),
];

test.each(RUNTIME_NAMES)('runtime %s: contract suite, escape suite, docs', (name) => {
  const suite = `sandbox/test/${name}.containers.test.ts`;
  expect(existsSync(join(ROOT, suite)), suite).toBe(true);
  expect(read(suite)).toContain('sandboxContract(');
  // The host runtime isolates nothing, so it has no escape suite.
  if (name !== 'host')
    expect(read('sandbox/test/escape/escape.containers.test.ts')).toContain(`escapeSuite('${name}'`);
  expect(read('docs/running.md'), 'its row in the table of runtimes').toContain(`\n| \`${name}\` |`);
});

test.each(agentsWith({}))('agent %s: docs', (name) => {
  expect(read('docs/running.md'), 'its row in the table of agents').toContain(`\n| \`${name}\` |`);
});

test.each(DatasetFamily.options)('dataset family %s: docs', (name) => {
  expect(read('docs/datasets.md'), 'its row in the table of families').toContain(`\n| \`${name}\` |`);
});

test.each(TOOL_PARSERS)('tool parser %s: docs', (name) => {
  expect(read('docs/tokens.md'), 'its row in the table of families').toContain(`\`${name}\``);
});

test('every metric of a worker is counted somewhere', () => {
  const text = sources('worker/src/');
  const unused = Object.keys(WORKER_METRICS).filter(
    (key) => !new RegExp(`\\bmetrics\\.${key}\\b`).test(text),
  );
  expect(unused).toEqual([]);
});

test('every command of swefarm is in the docs', () => {
  const list = read('producer/src/cli/commands.ts');
  const commands = [...list.matchAll(/^ {2}(\w+): async/gm)].map(([, name = '']) => name);
  expect(commands.length).toBeGreaterThan(20);
  const text = pages.map(read).join('\n');
  expect(commands.filter((name) => !text.includes(`swefarm ${name}`))).toEqual([]);
});

test('every stage of an attempt that the glossary names is a type of the code', () => {
  const [, table = ''] = /## How a rollout moves[\s\S]*?\n((?:\|.*\n)+)/.exec(read('GLOSSARY.md')) ?? [];
  const names = table.split('\n').flatMap((row) => {
    const cell = row.split('|')[2] ?? '';
    return [...cell.matchAll(/`([A-Z]\w+)`/g)].map(([, name]) => name);
  });
  expect(names.length).toBeGreaterThan(7);
  const text = sources('worker/src/') + sources('shared/src/');
  expect(names.filter((name) => !new RegExp(`\\b(?:type|interface|class) ${name}\\b`).test(text))).toEqual(
    [],
  );
});

test.each(pages)('%s: each file that it names exists', (page) => {
  const text = read(page);
  const mentioned = [
    ...text.matchAll(
      /`((?:(?:policy|datasets|runs|gateway)(?=\/(?:src|test|page)\/)|shared|sandbox|grading|trajectories|producer|worker|testkit|slurm|helm|dashboards|docs|bench)\/[\w./-]+)`/g,
    ),
  ].map(([, path = '']) => path);
  const failures = Object.entries(FAILURES).map(([name, { stage }]) => `${stage}/${name}`);
  // Words in capitals, such as NAME, are placeholders.
  const named = mentioned.filter(
    (path) =>
      !/[A-Z]{3,}(?!ME\.md)/.test(path) && !path.startsWith('gateway/page/dist') && !failures.includes(path),
  );
  const linked = [...text.matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)].map(([, to = '']) =>
    join(dirname(page), to),
  );
  expect([...named, ...linked].filter((path) => !existsSync(resolve(ROOT, path)))).toEqual([]);
});

test('lines of pages that people write stay below 300 characters', () => {
  const long = pages
    .filter((page) => !['docs/configuration.md', 'docs/metrics.md'].includes(page))
    .flatMap((page) =>
      read(page)
        .split('\n')
        .flatMap((line, at) => (line.length >= 300 ? [`${page}:${at + 1}`] : [])),
    );
  expect(long).toEqual([]);
});

/** Returns the anchors of a page's headings, as GitHub names them. */
const anchorsOf = (page: string): string[] =>
  [...read(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-'),
  );

test('links between pages name headings that exist', () => {
  const dead = pages.flatMap((page) =>
    [...read(page).matchAll(/\]\((?!https?:)([^)#\s]*\.md)?#([^)\s]+)\)/g)].flatMap(
      ([link, to, anchor = '']) => {
        const target = to === undefined ? page : join(dirname(page), to);
        return anchorsOf(target).includes(anchor) ? [] : [`${page}: ${link}`];
      },
    ),
  );
  expect(dead).toEqual([]);
});
