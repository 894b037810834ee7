/** The programs in a repository that run its tests: what the test command names, its tools' configuration, and what those load first. */
import type { Instance } from '@swefarm/shared';
import { pathOf, readDiff } from './diff.ts';
import { END_MARKER, START_MARKER } from './markers.ts';
import { specOf } from './specs.ts';

/** Files by which a tool that the command names is told what to do. */
const CONFIGURATION: Readonly<Record<string, RegExp>> = {
  jest: /(^|\/)jest\.config\.[a-z]+$/,
  karma: /(^|\/)karma\.conf\.[a-z]+$/,
  mocha: /(^|\/)\.mocharc(?:\.[a-z]+)?$/,
  vitest: /(^|\/)vitest?\.config\.[a-z]+$/,
  phpunit: /(^|\/)phpunit\.xml(?:\.dist)?$/,
  grunt: /(^|\/)Gruntfile\.[a-z]+$/i,
  gulp: /(^|\/)gulpfile\.[a-z]+$/i,
  rspec: /(^|\/)(?:\.rspec|(?:spec|rails)_helper\.rb)$/,
  make: /(^|\/)(?:GNUm|M|m)akefile$/,
};
/** Runners that are a shell around modules of the package itself. */
const BEHIND: readonly { program: string; modules: RegExp }[] = [
  { program: 'tests/runtests.py', modules: /^django\/test\/(?:__init__|runner|simple|testcases|utils)\.py$/ },
  { program: 'bin/test', modules: /^sympy\/(?:testing|utilities)\/(?:__init__|runtests\w*)\.py$/ },
];
const WORD = /[^\s'"`;|&()=,]+/g;
const FILE = /^(?:\.\/)?((?:[\w.@+-]+\/)*[\w.@+-]*\w)$/;

/**
 * Whether a file of the repository has a say in how this instance's tests are run. Files that gold or the test patch touch have
 * not, nor has the package behind a runner that gold mends.
 */
export function runnersOf(instance: Instance): (path: string) => boolean {
  const spared = new Set([...pathsOf(instance.patch), ...pathsOf(instance.test_patch)]);
  const words = commandOf(instance).match(WORD) ?? [];
  const bare = (word: string): string[] => FILE.exec(word)?.[1]?.split('/').slice(-1) ?? [];
  const named = new Set(
    words.filter((word) => /[./]/.test(word)).flatMap((word) => FILE.exec(word)?.[1] ?? []),
  );
  const tools = new Set(words.flatMap(bare));
  const patterns = Object.entries(CONFIGURATION).flatMap(([tool, files]) => (tools.has(tool) ? [files] : []));
  for (const { program, modules } of BEHIND) {
    if (named.has(program) && ![...spared].some((path) => modules.test(path))) patterns.push(modules);
  }
  // Django's command names its settings as Python does.
  const settings = words.flatMap((word, at) => (word === '--settings' ? (words[at + 1] ?? []) : []));
  for (const module of settings) named.add(`tests/${module.replaceAll('.', '/')}.py`);
  return (path) => !spared.has(path) && (named.has(path) || patterns.some((one) => one.test(path)));
}

/** The row's own, the table's, or what stands between the markers of the row's script; '' when none is known. */
function commandOf(instance: Instance): string {
  if (instance.eval_script !== undefined) {
    const [, after = instance.eval_script] = instance.eval_script.split(START_MARKER, 2);
    return after.split(END_MARKER, 1)[0] ?? '';
  }
  try {
    return specOf(instance, instance.family === 'swegym' ? 'swegym' : 'swebench').testCommands.join('\n');
  } catch {
    // Where no command is known, nothing is evaluated.
    return '';
  }
}

function pathsOf(patch: string): string[] {
  try {
    return readDiff(patch).map(pathOf);
  } catch {
    // A patch that this reader refuses is judged by whether it applies.
    return [];
  }
}
