/** Removes files from a patch that could decide test outcomes, so that a second evaluation shows the verdict without these files. */
import type { Instance } from '@swefarm/shared';
import { type DiffFile, isMoved, isNew, pathOf, readDiffOrNull } from '../text/diff.ts';
import { hasHooks, isStartupFile } from './patchfiles.ts';
import { runnersOf } from './runners.ts';

/**
 * Returns the patch without files that run in every test (conftest.py, sitecustomize.py, …), new modules that hook into the test run,
 * edits of the program that runs the tests, and new files at paths where the test patch adds files. Hooks of gold remain. Returns null if
 * the patch has no such file or cannot be split.
 */
export function withoutTestHooks(
  patch: string,
  instance: Instance,
): { patch: string; files: string[] } | null {
  const sections = patch.split(/^(?=diff --git )/m);
  const head = sections[0]?.startsWith('diff --git ') ? [] : sections.splice(0, 1);
  const gold = new Set(readDiffOrNull(instance.patch)?.map(pathOf));
  const hidden = new Set(newFiles(instance.test_patch));
  const runs = runnersOf(instance);
  const files: string[] = [];
  const remaining: string[] = [];
  for (const section of sections) {
    const found = readDiffOrNull(section);
    if (found?.length !== 1 || !found[0]) return null;
    const [file] = found;
    const path = pathOf(file);
    const decides =
      !gold.has(path) && (isStartupFile(path) || runs(path) || (isNew(file) && hasHooks(file.added)));
    if (decides || (takesPath(file) && hidden.has(path))) files.push(path);
    else remaining.push(section);
  }
  return files.length === 0 ? null : { patch: [...head, ...remaining].join(''), files };
}

/** Whether the patch creates the path. If the section of a moved file is removed, the file stays at the old path. */
const takesPath = (file: DiffFile): boolean => isNew(file) || isMoved(file);

/** Returns the paths of the files that a patch adds; none if the patch cannot be parsed. */
const newFiles = (patch: string): string[] => readDiffOrNull(patch)?.filter(isNew).map(pathOf) ?? [];

/** Returns the new files of the patch at paths where the test patch adds files, except files with the same content as in gold. */
export function replacedTestFiles(patch: string, instance: Pick<Instance, 'patch' | 'test_patch'>): string[] {
  const hidden = new Set(newFiles(instance.test_patch));
  const gold = new Map(readDiffOrNull(instance.patch)?.map((file) => [pathOf(file), file.added.join('\n')]));
  return (readDiffOrNull(patch) ?? [])
    .filter((file) => takesPath(file) && hidden.has(pathOf(file)))
    .filter((file) => gold.get(pathOf(file)) !== file.added.join('\n'))
    .map(pathOf);
}
