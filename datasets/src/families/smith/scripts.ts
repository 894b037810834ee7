/** The shell scripts of SWE-smith's instances: they make the tree with the bug, hide its tests and bring them back. */
import { readFileSync } from 'node:fs';
import type { TestFiles } from '@swefarm/grading';
import { quoted } from '../../fields/bash.ts';

/** Without comments, because each row contains a copy. */
const text = (name: string): string =>
  readFileSync(new URL(`./${name}`, import.meta.url), 'utf8').replace(/^ *#.*\n/gm, '');
const START = text('start.sh');
const FILES = text('files.sh');
const HIDDEN = text('hidden.sh');
const HIDE = text('hide.sh');
const ROOM = text('room.sh');
const RESTORE = text('restore.sh');
/** The search for test files in the tree. */
const SEARCH: Record<TestFiles['rule'], string> = {
  files: '',
  go: text('go.sh'),
  java: text('java.sh'),
  javascript: text('javascript.sh'),
  php: text('php.sh'),
  rust: text('rust.sh'),
};

export type SmithTree = {
  instanceId: string;
  folder: string;
  /** The patch of the row, which makes the bug. */
  bug: string;
  /** The files that the patch changes. */
  changed: readonly string[];
};

/** A shell function that prints a text. */
const printing = (name: string, value: string): string =>
  `${name}() {\nbase64 -d <<'END'\n${(
    Buffer.from(value, 'utf8')
      .toString('base64')
      .match(/.{1,76}/g) ?? []
  ).join('\n')}\nEND\n}`;

const lines = (values: readonly string[]): string =>
  values
    .filter((value) => value !== '' && !value.includes('\n'))
    .map((value) => `${value}\n`)
    .join('');

const heading = ({ instanceId, folder }: SmithTree): string =>
  `id=${quoted(instanceId)}\nfolder=${quoted(folder)}`;

const searching = (tree: SmithTree, tests: TestFiles): string[] => [
  heading(tree),
  `rule=${tests.rule}`,
  printing('names', lines(tests.rule === 'files' ? tests.files : tests.names)),
  printing('changed', lines(tree.changed)),
  SEARCH[tests.rule],
  FILES,
];

/** Checks out the commit with the bug and all tests: the branch of the instance if the image has it, else its patch on `main`. */
export const startScript = (tree: SmithTree): string =>
  [heading(tree), printing('bug', tree.bug), START].join('\n');

/** Removes the files of these tests, and those that the branch of the instance removed. */
export const hideScript = (tree: SmithTree, tests: TestFiles): string =>
  [...searching(tree, tests), HIDDEN, HIDE].join('\n');

/** Resets the files of the patch at `path`, and removes the hidden test files that the patch creates. */
export const roomScript = (tree: SmithTree, tests: TestFiles, path: string): string =>
  [...searching(tree, tests), `patch=${quoted(path)}`, HIDDEN, ROOM].join('\n');

/** Restores the files of these tests from the start commit. */
export const restoreScript = (tree: SmithTree, tests: TestFiles): string =>
  [...searching(tree, tests), RESTORE].join('\n');
