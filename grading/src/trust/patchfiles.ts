/** Finds changes that a fix does not need: files and lines that control how tests are found, run and reported. */
import type { Instance } from '@swefarm/shared';
import { type DiffFile, isDeleted, isNew, pathOf, readDiffOrNull } from '../text/diff.ts';
import { suspicious, type TrustFinding } from './finding.ts';
import { runnersOf } from './runners.ts';

/** Files that Python, pytest or git reads automatically, or that replace pytest. */
const STARTUP_FILES: { name: RegExp; what: string }[] = [
  { name: /(^|\/)conftest\.py$/, what: 'conftest.py' },
  { name: /(^|\/)(?:sitecustomize|usercustomize)\.py$/, what: 'a module that Python loads at start' },
  { name: /\.pth$/, what: 'a .pth file' },
  { name: /(^|\/)_?pytest(?:\.py|\/__init__\.py)?$/, what: 'something named pytest' },
  { name: /\.(?:dist|egg)-info\//, what: 'the metadata of installed packages' },
  { name: /(^|\/)\.gitattributes$/, what: 'what git makes of files' },
  { name: /(^|\/)(?:pytest\.ini|\.pytest\.ini|pytest\.toml)$/, what: 'the configuration of pytest' },
];
/** Configuration files of several tools. Only changes of lines about tests are findings. */
const CONFIGS = /(^|\/)(?:tox\.ini|setup\.cfg|pyproject\.toml|setup\.py|noxfile\.py)$/;
const CONFIG_LINES =
  /^\s*(?:addopts|python_files|python_functions|python_classes|testpaths|norecursedirs|pytest_plugins)\b|pytest11|^\s*(?:build-backend|backend-path)\b|\[tool[.:]pytest|\[pytest\]|\[tool:pytest\]|-p\s+\w|--(?:ignore|deselect|import-mode)\b/;

/** Matches lines that decide outcomes instead of the tests. */
const OVERRIDES =
  /\.outcome\s*=\s*['"]passed['"]|\bdef\s+pytest_(?:pyfunc_call|runtest_protocol|runtest_call)\b|\bforce_result\s*\(|\bsession\.exitstatus\s*=\s*0|\bcallspec\.outcome\b/;
const HOOKS =
  /\bdef\s+pytest_(?:runtest_makereport|runtest_logreport|report_teststatus|sessionfinish|collection_modifyitems|terminal_summary|unconfigure)\b/;
const EXITS = /\bos\._exit\s*\(|\bos\.kill\s*\(/;
/** Matches code that setup.py does not need to describe a package. setup.py runs before the test files are reset. */
const INSTALLS =
  /\b(?:subprocess|shutil|ctypes|signal|multiprocessing|threading|socket|os\.(?:system|fork|exec|popen|spawn|kill|rename|replace|unlink|remove|symlink|chmod))\b|\b(?:exec|eval|__import__)\s*\(|\bopen\s*\([^)]*['"][wax]/;

export const isStartupFile = (path: string): boolean => STARTUP_FILES.some(({ name }) => name.test(path));
export const hasHooks = (added: readonly string[]): boolean =>
  added.some((line) => line.length < 2000 && (HOOKS.test(line) || OVERRIDES.test(line)));

/** Returns the findings of a patch. Lines of gold are never findings; in files of gold, only lines that affect outcomes are findings. */
export function patchFindings(modelPatch: string | null, instance: Instance): TrustFinding[] {
  if (modelPatch === null || modelPatch.trim() === '') return [];
  const files = readDiffOrNull(modelPatch);
  if (files === null) return [];
  const gold = readDiffOrNull(instance.patch) ?? [];
  const goldPaths = new Set(gold.map(pathOf));
  const goldLines = new Set(gold.flatMap((file) => file.added));
  const counted = countedTestFiles(instance);
  const runs = runnersOf(instance);
  return files.flatMap((file) => {
    const path = pathOf(file);
    const added = file.added.filter((line) => !goldLines.has(line));
    const overrides = overrideFindings(file, added, instance);
    if (goldPaths.has(path)) return overrides;
    const adds = (pattern: RegExp): boolean => added.some((line) => pattern.test(line));
    const changes = (what: string, applies: boolean): TrustFinding[] =>
      applies ? [suspicious(`the patch changes ${what}: ${path}`)] : [];
    return [
      ...startupFileFindings(file, path),
      ...changes('the program that runs the tests', runs(path)),
      ...changes('how tests are run', CONFIGS.test(path) && adds(CONFIG_LINES)),
      // Code in setup.py runs as root in the clean container, before the tests are reset.
      ...changes('what the installation runs', /(^|\/)setup\.py$/.test(path) && adds(INSTALLS)),
      ...overrides,
      // A good fix may add tests, but removes no lines from a test file that decides the verdict and is not reset.
      ...changes('a test file that decides the verdict', removesLines(file) && counted.has(path)),
    ];
  });
}

const removesLines = (file: DiffFile): boolean => file.removed > 0 || isDeleted(file) || file.binary;

function startupFileFindings(file: DiffFile, path: string): TrustFinding[] {
  const known = STARTUP_FILES.find(({ name }) => name.test(path));
  if (!known) return [];
  const verb = isNew(file) ? 'adds' : isDeleted(file) ? 'deletes' : 'changes';
  return [suspicious(`the patch ${verb} ${known.what}: ${path}`)];
}

function overrideFindings(file: DiffFile, added: string[], instance: Instance): TrustFinding[] {
  const path = pathOf(file);
  // The sources of pytest itself handle outcomes.
  const isFramework = instance.repo === 'pytest-dev/pytest' && !/(^|\/)conftest\.py$/.test(path);
  const code = added.filter((line) => !line.trimStart().startsWith('#') && line.length < 2000);
  const first = (pattern: RegExp): string | undefined =>
    code
      .find((line) => pattern.test(line))
      ?.trim()
      .slice(0, 120);
  const overriding = first(OVERRIDES);
  if (overriding !== undefined && !isFramework)
    return [{ level: 'forged', reason: `the patch decides test outcomes itself: ${path}: ${overriding}` }];
  const hooking = first(HOOKS);
  if (hooking !== undefined && !isFramework)
    return [suspicious(`the patch hooks into the test run: ${path}: ${hooking}`)];
  const exiting = first(EXITS);
  return exiting === undefined
    ? []
    : [suspicious(`the patch ends the process outright: ${path}: ${exiting}`)];
}

/** Returns the files of the counted tests, without the files that the test patch resets. */
function countedTestFiles(instance: Instance): Set<string> {
  const reset = new Set((readDiffOrNull(instance.test_patch) ?? []).map(pathOf));
  const counted = [...instance.FAIL_TO_PASS, ...instance.PASS_TO_PASS]
    .filter((name) => name.includes('::'))
    .map((name) => name.split('::', 1)[0] ?? '');
  return new Set(counted.filter((path) => !reset.has(path)));
}
