// Refuses releases whose parts do not belong together.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { git } from '../compile/origin.mjs';
import { ROOT } from '../compile/pieces.mjs';

/** Wrong usage, or a tree from which nothing is built. */
export class Refusal extends Error {}

const read = (path) => readFile(join(ROOT, path), 'utf8');

/**
 * Returns the version of the release and its section of the changelog.
 * @throws Refusal with every reason: changed files, versions that differ, no section of the changelog
 */
export async function checkedRelease() {
  const { version, workspaces } = JSON.parse(await read('package.json'));
  const notes = sectionOf(await read('CHANGELOG.md'), version);
  const reasons = [
    ...(await changedFiles()),
    ...differing(version, await versions(workspaces)),
    ...(notes === ''
      ? [`CHANGELOG.md: expected a section "## [${version}]" with text: rename "Unreleased"`]
      : []),
  ];
  if (reasons.length > 0) throw new Refusal(reasons.join('\n'));
  return { version, notes };
}

async function changedFiles() {
  if ((await git('rev-parse', 'HEAD')) === '') return ['no git clone: releases are built from a commit'];
  const changed = (await git('status', '--porcelain')).split('\n').filter((line) => line !== '');
  if (changed.length === 0) return [];
  return [`${changed.length} changed or new files, such as ${changed[0].slice(3)}: commit or remove them`];
}

/** Returns pairs of a file with a field, and the version in it. */
async function versions(workspaces) {
  const packages = workspaces.map(async (name) => {
    const path = `${name}/package.json`;
    return [`${path} version`, JSON.parse(await read(path)).version];
  });
  const chart = await read('helm/swefarm/Chart.yaml');
  const python = await read('producer/python/pyproject.toml');
  return [
    ...(await Promise.all(packages)),
    ['helm/swefarm/Chart.yaml version', /^version: (.*)$/m.exec(chart)?.[1]],
    ['helm/swefarm/Chart.yaml appVersion', /^appVersion: (.*)$/m.exec(chart)?.[1]],
    ['producer/python/pyproject.toml version', /^version = "(.*)"$/m.exec(python)?.[1]],
  ];
}

/** Returns a sentence for each pair of {@link versions} with another version. */
export const differing = (version, found) =>
  found
    .filter(([, own]) => own !== version)
    .map(([field, own]) => `${field}: expected ${version} as in package.json, found ${own ?? 'none'}`);

/** Returns the text below the heading of `version` in a changelog; empty if there is no such heading or text. */
export function sectionOf(changelog, version) {
  const [, ...sections] = `\n${changelog}`.split(/\n## /);
  const own = sections.find((section) => section.startsWith(`[${version}]`));
  return own?.slice(own.includes('\n') ? own.indexOf('\n') : own.length).trim() ?? '';
}
