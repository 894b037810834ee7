/** Finds the files of a repository that run its tests: programs of the test command and the configuration of its tools. */
import type { Instance } from '@swefarm/shared';
import { END_MARKER, START_MARKER } from '../plan/markers.ts';
import { specOf } from '../plan/specs.ts';
import { pathOf, readDiff } from '../text/diff.ts';

/** Configuration files of the tools in the command. */
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
/** Runners that only call modules of the package. */
const BEHIND: readonly { program: string; modules: RegExp }[] = [
  { program: 'tests/runtests.py', modules: /^django\/test\/(?:__init__|runner|simple|testcases|utils)\.py$/ },
  { program: 'bin/test', modules: /^sympy\/(?:testing|utilities)\/(?:__init__|runtests\w*)\.py$/ },
];
/** Programs that start the next word as a program. */
const LAUNCHER =
  /^(?:python[\d.]*|node|ruby|php|perl|bash|sh|source|\.|exec|env|time|command|npx|yarn|xvfb-run)$/;
/** Options whose value is a file or a Django module that configures the tests. */
const CONFIGURES = /^--?(?:c|config|configuration|rcfile|settings|require)$/;
/** Variable assignments before a program. */
const ASSIGNMENTS = /^\s*(?:[A-Za-z_]\w*=(?:'[^']*'|"[^"]*"|[^\s'"]*)\s+)*/;
const FILE = /^(?:\.\/)?((?:[\w.@+-]+\/)*[\w.@+-]*\w)$/;

/**
 * Returns whether a file of the repository influences how the tests of this instance run. Files of gold and of the test patch do not count,
 * nor do the modules behind a runner that gold changes.
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

/** Returns whether a file belongs to a module that the test command runs by its name (`python -m NAME`). */
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

/** The command between the markers of the row's script, else the command of the table; '' if unknown. */
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

function pathsOf(patch: string): string[] {
  try {
    return readDiff(patch).map(pathOf);
  } catch {
    // The parser refuses the patch; the evaluation decides whether it applies.
    return [];
  }
}
