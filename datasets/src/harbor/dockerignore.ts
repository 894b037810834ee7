/** Finds the files that `.dockerignore` excludes from the context of a build, as `docker build` does. */
import { posix } from 'node:path';
import ignore from 'ignore';

/**
 * Returns a function that decides whether a file is excluded. The last pattern that matches the file or a folder above the file decides.
 * Patterns are relative to the root of the context. `.gitignore` has other rules for both.
 * @param text content of `.dockerignore`
 */
export function readDockerignore(text: string): (path: string) => boolean {
  const rules = text
    .replace(/^\uFEFF/, '')
    .split('\n')
    .filter((line) => !line.startsWith('#'))
    .map((line) => line.trim())
    .map((line) => ({ excludes: !line.startsWith('!'), pattern: line.replace(/^!\s*/, '') }))
    .filter(({ pattern }) => pattern !== '')
    .map(({ excludes, pattern }) => ({ excludes, pattern: posix.join('/', pattern).replace(/\/$/, '') }))
    .filter(({ pattern }) => pattern !== '')
    .map(({ excludes, pattern }) => ({ excludes, patterns: ignore({ ignorecase: false }).add(pattern) }));
  return (path) => rules.findLast(({ patterns }) => patterns.ignores(path))?.excludes ?? false;
}
