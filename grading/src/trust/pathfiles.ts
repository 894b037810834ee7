/**
 * Path files: `.pth` files among the installed packages, by which Python finds packages and runs code at start. An editable
 * installation, which most eval scripts repeat, writes one; fixtures/editable.json lists what each backend writes
 * (test/editable/run.ts generates it). Any other change is a finding.
 */
import type { Instance } from '@swefarm/shared';
import { pathOf, readDiff } from '../text/diff.ts';
import type { TrustFinding } from './finding.ts';

const SHOWN = 3;
/** `path` when its lines were not read; else `path:` and a `path:line` for each of its lines. */
const ENTRY = /^(\/.*?\/(?:site|dist)-packages\/[^/]*?\.pth)(?::(.*))?$/s;
/** Packages of the repository itself, in any folder of it. */
const TREE = /^\/testbed(?:\/(?!\.\.(?:\/|$))[^/]*)*$/;
/** setuptools, meson-python, scikit-build-core and editables install an import finder in a module of their own. */
const LOADER =
  /^import (__editable___\w+_finder|_\w+_editable(?:_loader)?|_editable_(?:impl|skbc)_\w+)(?:; ?\1\.(?:install|init)\(\))?$/;
/** Old setuptools puts eggs before all other paths. */
const EASY_INSTALL =
  /^import sys; (?:sys\.__plen = len\(sys\.path\)|new ?= ?sys\.path\[sys\.__plen:\]; del sys\.path\[sys\.__plen:\]; p ?= ?getattr\(sys, ?'__egginsert', ?0\); sys\.path\[p:p\] ?= ?new; sys\.__egginsert ?= ?p ?\+ ?len\(new\))$/;
const DISTUTILS =
  /^import os; var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os\.environ\.get\(var, '(?:local|stdlib)'\) == 'local'; enabled and __import__\('_distutils_hack'\);?$/;
/** The files from which a backend builds, and which it may run: a patch that changes them may change what the backend generates. */
const BUILDS =
  /(^|\/)(?:setup\.(?:py|cfg)|pyproject\.toml|meson\.build|meson\.options|meson_options\.txt|CMakeLists\.txt|hatch_build\.py|pdm_build\.py|build\.py|versioneer\.py)$/;

/** Whether Python reads a path at start. */
export const isPathFile = (path: string): boolean => ENTRY.exec(path)?.[1] === path;

/** `changed`: files that the evaluation changed, path files with their lines. */
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
  // Eggs beside it: easy_install rewrites the file with each of its entries.
  const folder = path.slice(0, path.lastIndexOf('/') + 1);
  return /^[\w.+-]+\.egg$/.test(
    line.startsWith(folder) ? line.slice(folder.length) : line.replace(/^\.\//, ''),
  );
}

/** Whether the patch changes the build in a way that gold does not. */
function changesBuild(modelPatch: string | null, instance: Pick<Instance, 'patch'>): boolean {
  const paths = (patch: string): string[] => readDiff(patch).map(pathOf);
  try {
    const gold = new Set(paths(instance.patch));
    return paths(modelPatch ?? '').some((path) => BUILDS.test(path) && !gold.has(path));
  } catch {
    // A patch that this parser cannot split may contain anything.
    return true;
  }
}
