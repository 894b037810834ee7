/** Finds the files of a repository that run the tests: programs of the test command, and configuration files of test tools. */
import type { Instance } from '@swefarm/shared';
import { END_MARKER, START_MARKER } from '../plan/markers.ts';
import { specOf } from '../plan/specs.ts';
import { pathOf, readDiffOrNull } from '../text/diff.ts';

/** Configuration files of each tool that a test command may contain. */
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
/** Programs that run the tests only by calling modules of the package, with the paths of these modules. */
const BEHIND: readonly { program: string; modules: RegExp }[] = [
  { program: 'tests/runtests.py', modules: /^django\/test\/(?:__init__|runner|simple|testcases|utils)\.py$/ },
  { program: 'bin/test', modules: /^sympy\/(?:testing|utilities)\/(?:__init__|runtests\w*)\.py$/ },
];
/** Programs that run the next word of the command as a program. */
const LAUNCHER =
  /^(?:python[\d.]*|node|ruby|php|perl|bash|sh|source|\.|exec|env|time|command|npx|yarn|xvfb-run)$/;
/** Options whose value is a file or a Django module that configures the tests. */
const CONFIGURES = /^--?(?:c|config|configuration|rcfile|settings|require)$/;
/** Matches the variable assignments before a program. */
const ASSIGNMENTS = /^\s*(?:[A-Za-z_]\w*=(?:'[^']*'|"[^"]*"|[^\s'"]*)\s+)*/;
const FILE = /^(?:\.\/)?((?:[\w.@+-]+\/)*[\w.@+-]*\w)$/;

/**
 * Returns a function that tells whether a file of the repository influences how the tests of the instance run. Files of gold and of the
 * test patch do not count. If one of them is a module of {@link BEHIND}, no module of that program counts.
 */
export function runnersOf(instance: Instance): (path: string) => boolean {
  const spared = new Set([...pathsOf(instance.patch), ...pathsOf(instance.test_patch)]);
  const named = new Set<string>();
  const tools = new Set<string>();
  for (const command of commandOf(instance).split(/[\n;|&()]+/)) {
    for (const { word, settings } of runnersIn(
      command
        .replace(ASSIGNMENTS, '')
        .replaceAll(/['"]/g, ' ')
        .trim()
        .split(/[\s=]+/),
    )) {
      const [, file] = FILE.exec(word) ?? [];
      if (file === undefined) continue;
      tools.add(file.split('/').at(-1) ?? '');
      if (settings) named.add(`tests/${file.replaceAll('.', '/')}.py`);
      if (/[./]/.test(word)) named.add(file);
    }
  }
  const patterns = Object.entries(CONFIGURATION).flatMap(([tool, files]) => (tools.has(tool) ? [files] : []));
  for (const { program, modules } of BEHIND) {
    if (named.has(program) && ![...spared].some((path) => modules.test(path))) patterns.push(modules);
  }
  return (path) => !spared.has(path) && (named.has(path) || patterns.some((one) => one.test(path)));
}

/** Returns a function that checks whether the test command runs the module of a file by name (`python -m NAME`). */
export function modulesRunOf(instance: Instance): (path: string) => boolean {
  const names = [...commandOf(instance).matchAll(/\s-m\s+(\w+)/g)].map(([, name]) => name);
  return (path) => path.split('/').some((part) => names.includes(part.replace(/\.py$/, '')));
}

/** Yields the program of a simple command, the program that a launcher starts, and the values of configuring options. */
function* runnersIn(words: readonly string[]): Generator<{ word: string; settings: boolean }> {
  let program = true;
  for (const [at, word] of words.entries()) {
    const option = words[at - 1] ?? '';
    if (CONFIGURES.test(option)) yield { word, settings: option === '--settings' };
    else if (program && !word.startsWith('-')) {
      yield { word, settings: false };
      program = LAUNCHER.test(word);
    }
  }
}

/** Returns the command between the markers of the row's script, or else the command of the table; '' if there is none. */
function commandOf(instance: Instance): string {
  const own = instance.plan?.script ?? instance.eval_script;
  if (own !== undefined) {
    const [, after = own] = own.split(START_MARKER, 2);
    return after.split(END_MARKER, 1)[0] ?? '';
  }
  try {
    return specOf(instance, instance.family === 'swegym' ? 'swegym' : 'swebench').testCommands.join('\n');
  } catch {
    // An instance without a known command is not evaluated.
    return '';
  }
}

const pathsOf = (patch: string): string[] => (readDiffOrNull(patch) ?? []).map(pathOf);
