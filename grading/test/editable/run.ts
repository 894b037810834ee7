/**
 * Lists the files that an editable installation writes where Python reads at start, by backend: installs a small package twice, in a
 * virtual environment of its own, and lists the changes of the second time. Run by hand: node grading/test/editable/run.ts
 * [--write] compares with fixtures/editable.json, or replaces it. Needs python3 and a package index.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { isDeepStrictEqual, parseArgs } from 'node:util';

const { values } = parseArgs({ options: { write: { type: 'boolean', default: false } } });
const FACTS = new URL('../../fixtures/editable.json', import.meta.url);

type Backend = {
  requires: string[];
  backend: string;
  tables?: string;
  files?: Record<string, string>;
  legacy?: true;
};
const project = '[project]\nname = "crate"\nversion = "1.0"\ndescription = "d"\n';
const packages = '[tool.setuptools]\npackages = ["crate"]\n';
const poetry = '[tool.poetry]\nname = "crate"\nversion = "1.0"\ndescription = "d"\nauthors = ["a <a@b.c>"]\n';
const setup =
  'from setuptools import setup\nsetup(name="crate", version="1.0", packages=["crate"], entry_points={"console_scripts": ["crate = crate:main"]})\n';
const meson =
  "project('crate', version: '1.0')\nimport('python').find_installation().install_sources('crate/__init__.py', subdir: 'crate')\n";
const cmake = 'cmake_minimum_required(VERSION 3.15)\nproject(crate LANGUAGES NONE)\n';

const of = (name: string, version: string, backend: string, tables = project): Backend => ({
  requires: [`${name}==${version}`],
  backend,
  tables,
});
const BACKENDS: Record<string, Backend> = {
  'flit_core 3.4': of('flit_core', '3.4.0', 'flit_core.buildapi'),
  'flit_core 3.12': of('flit_core', '3.12.0', 'flit_core.buildapi'),
  'poetry-core 1.0': of('poetry-core', '1.0.8', 'poetry.core.masonry.api', poetry),
  'poetry-core 2.1': of('poetry-core', '2.1.3', 'poetry.core.masonry.api', poetry),
  'hatchling 1.4': of('hatchling', '1.4.1', 'hatchling.build'),
  'hatchling 1.27': of('hatchling', '1.27.0', 'hatchling.build'),
  'hatchling 1.27, exact': of(
    'hatchling',
    '1.27.0',
    'hatchling.build',
    `${project}[tool.hatch.build]\ndev-mode-exact = true\n`,
  ),
  'pdm-pep517 1.1': of('pdm-pep517', '1.1.4', 'pdm.pep517.api', `${project}license = {text = "MIT"}\n`),
  'pdm-backend 2.4': of('pdm-backend', '2.4.5', 'pdm.backend'),
  'pdm-backend 2.4, editables': of(
    'pdm-backend',
    '2.4.5',
    'pdm.backend',
    `${project}[tool.pdm.build]\neditable-backend = "editables"\n`,
  ),
  'setuptools 64': of('setuptools', '64.0.3', 'setuptools.build_meta', project + packages),
  'setuptools 80': of('setuptools', '80.9.0', 'setuptools.build_meta', project + packages),
  'setuptools 80, src': {
    ...of(
      'setuptools',
      '80.9.0',
      'setuptools.build_meta',
      `${project}[tool.setuptools.packages.find]\nwhere = ["src"]\n`,
    ),
    files: { 'src/lid/__init__.py': '' },
  },
  'setuptools 59, develop': {
    requires: ['setuptools==59.8.0'],
    backend: '',
    files: { 'setup.py': setup },
    legacy: true,
  },
  'meson-python 0.13': { ...of('meson-python', '0.13.2', 'mesonpy'), files: { 'meson.build': meson } },
  'meson-python 0.18': { ...of('meson-python', '0.18.0', 'mesonpy'), files: { 'meson.build': meson } },
  'scikit-build-core 0.8': {
    ...of(
      'scikit-build-core',
      '0.8.2',
      'scikit_build_core.build',
      `${project}[tool.scikit-build]\nwheel.packages = ["crate"]\n`,
    ),
    files: { 'CMakeLists.txt': cmake },
  },
  'scikit-build-core 0.11': {
    ...of(
      'scikit-build-core',
      '0.11.6',
      'scikit_build_core.build',
      `${project}[tool.scikit-build]\nwheel.packages = ["crate"]\n`,
    ),
    files: { 'CMakeLists.txt': cmake },
  },
};

/** Backend → path in the environment → lines of a .pth file, or null for another file. /testbed replaces the path of the tree. */
type Facts = Record<string, Record<string, string[] | null>>;

function install(one: Backend, folder: string): Record<string, string[] | null> {
  const [tree, env] = [join(folder, 'tree'), join(folder, 'env')];
  const system =
    one.backend === ''
      ? ''
      : `[build-system]\nrequires = ${JSON.stringify(one.requires)}\nbuild-backend = "${one.backend}"\n`;
  const files = { 'crate/__init__.py': '"""A crate."""\n__version__ = "1.0"\n', ...one.files };
  const written: Record<string, string> =
    system === '' ? files : { ...files, 'pyproject.toml': system + (one.tables ?? '') };
  for (const [path, text] of Object.entries(written)) {
    mkdirSync(join(tree, dirname(path)), { recursive: true });
    writeFileSync(join(tree, path), text);
  }
  execFileSync('python3', ['-m', 'venv', env]);
  const python = join(env, 'bin/python');
  const run = (...args: string[]): Buffer =>
    execFileSync(python, args, { cwd: tree, stdio: ['ignore', 'pipe', 'pipe'] });
  if (one.legacy) run('-m', 'pip', '-q', 'install', ...one.requires);
  const editable = (): Buffer =>
    one.legacy ? run('setup.py', '-q', 'develop') : run('-m', 'pip', '-q', 'install', '-e', '.');
  editable();
  const before = Date.now();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1100);
  editable();
  const found: Record<string, string[] | null> = {};
  for (const entry of readdirSync(env, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    // lib64 is a link to lib; every installation writes the metadata of packages.
    if (entry.isDirectory() || /\/lib64\/|__pycache__|\.dist-info/.test(path)) continue;
    if (statSync(path).ctimeMs < before) continue;
    const lines = path.endsWith('.pth')
      ? readFileSync(path, 'utf8').replaceAll(tree, '/testbed').split('\n')
      : null;
    found[relative(env, path).replace(/python3\.\d+/, 'python3')] = lines?.filter(Boolean) ?? null;
  }
  return Object.fromEntries(Object.entries(found).sort(([a], [b]) => (a < b ? -1 : 1)));
}

const facts: Facts = {};
for (const [name, one] of Object.entries(BACKENDS)) {
  const folder = mkdtempSync(join(tmpdir(), 'swefarm-editable-'));
  try {
    facts[name] = install(one, folder);
    console.log(`${name}: ${Object.keys(facts[name]).join(', ')}`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
if (values.write) writeFileSync(FACTS, `${JSON.stringify(facts, null, 2)}\n`);
else if (!isDeepStrictEqual(facts, JSON.parse(readFileSync(FACTS, 'utf8')))) {
  console.error('not what fixtures/editable.json says: see what changed with --write and git diff');
  process.exitCode = 1;
}
