/**
 * Files by which Python finds packages, and runs code, when it starts: `.pth` among the installed packages. An editable
 * installation, as most eval scripts repeat it, writes one: what each backend writes is in fixtures/editable.json
 * (test/editable/run.ts tries it). Any other is a finding.
 */
import type { Instance } from '@swefarm/shared';
import { pathOf, readDiff } from '../text/diff.ts';
import type { TrustFinding } from './finding.ts';

const SHOWN = 3;
/** `path`, where nobody read it; else `path:` and a `path:line` for each of its lines. */
const ENTRY = /^(\/.*?\/(?:site|dist)-packages\/[^/]*?\.pth)(?::(.*))?$/s;
/** Packages of the repository itself, wherever it keeps them. */
const TREE = /^\/testbed(?:\/(?!\.\.(?:\/|$))[^/]*)*$/;
/** setuptools, meson-python, scikit-build-core and editables have a module of their own look for what is imported. */
const LOADER =
  /^import (__editable___\w+_finder|_\w+_editable(?:_loader)?|_editable_(?:impl|skbc)_\w+)(?:; ?\1\.(?:install|init)\(\))?$/;
/** Old setuptools puts eggs before all others. */
const EASY_INSTALL =
  /^import sys; (?:sys\.__plen = len\(sys\.path\)|new ?= ?sys\.path\[sys\.__plen:\]; del sys\.path\[sys\.__plen:\]; p ?= ?getattr\(sys, ?'__egginsert', ?0\); sys\.path\[p:p\] ?= ?new; sys\.__egginsert ?= ?p ?\+ ?len\(new\))$/;
const DISTUTILS =
  /^import os; var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os\.environ\.get\(var, '(?:local|stdlib)'\) == 'local'; enabled and __import__\('_distutils_hack'\);?$/;
/** What a backend builds from and may run: a patch that changes it may change what the backend generates. */
const BUILDS =
  /(^|\/)(?:setup\.(?:py|cfg)|pyproject\.toml|meson\.build|meson\.options|meson_options\.txt|CMakeLists\.txt|hatch_build\.py|pdm_build\.py|build\.py|versioneer\.py)$/;

/** Whether Python reads a path at start. */
export const isPathFile = (path: string): boolean => ENTRY.exec(path)?.[1] === path;

/** `changed`: files that the evaluation changed, `.pth` with their lines. */
export function pathFindings(
  changed: readonly string[] | undefined,
  modelPatch: string | null,
  instance: Pick<Instance, 'patch'>,
): TrustFinding[] {
  const files = new Map<string, string[] | null>();
  for (const entry of changed ?? []) {
    const [, path, line] = ENTRY.exec(entry) ?? [];
    if (path === undefined) continue;
    const lines = files.get(path) ?? null;
    files.set(path, line === undefined ? lines : [...(lines ?? []), line]);
  }
  const builds = changesBuild(modelPatch, instance);
  const found = [...files].flatMap(([path, lines]) => {
    const odd = lines === null ? '' : lines.find((line) => !isExpected(line, path, builds));
    return odd === undefined ? [] : [odd === '' ? path : `${path}: ${odd.trim().slice(0, 120)}`];
  });
  if (found.length === 0) return [];
  const more = found.length > SHOWN ? `, … (${found.length})` : '';
  const reason = `the evaluation left files that Python reads at start: ${found.slice(0, SHOWN).join(', ')}${more}`;
  return [{ level: 'suspicious', reason }];
}

function isExpected(given: string, path: string, builds: boolean): boolean {
  const line = given.trimEnd();
  if (line === '' || line.startsWith('#')) return true;
  if (LOADER.test(line)) return !builds;
  if (EASY_INSTALL.test(line) || DISTUTILS.test(line) || TREE.test(line)) return true;
  // Eggs beside it, which easy_install writes anew with each of its entries.
  const folder = path.slice(0, path.lastIndexOf('/') + 1);
  return /^[\w.+-]+\.egg$/.test(
    line.startsWith(folder) ? line.slice(folder.length) : line.replace(/^\.\//, ''),
  );
}

/** Whether the patch changes the build, except where gold does too. */
function changesBuild(modelPatch: string | null, instance: Pick<Instance, 'patch'>): boolean {
  const paths = (patch: string): string[] => readDiff(patch).map(pathOf);
  try {
    const gold = new Set(paths(instance.patch));
    return paths(modelPatch ?? '').some((path) => BUILDS.test(path) && !gold.has(path));
  } catch {
    // What this reader cannot split may hold anything.
    return true;
  }
}
