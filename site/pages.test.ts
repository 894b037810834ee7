/** Checks the pages, the links and the sidebar of the site without its generator. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { anchorOf } from './anchors.ts';
import {
  addressOf,
  addressOfLink,
  linkedSources,
  linksOf,
  pages,
  published,
  ROOT,
  sourcePage,
} from './pages.ts';
import { type Entry, sidebarOf } from './sidebar.ts';

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const INDEX = read('docs/README.md');

const anchorsOf = (page: string): string[] =>
  [
    ...read(page)
      .replace(/^```.*?^```/gms, '')
      .matchAll(/^#+ (.+)$/gm),
  ].map(([, heading = '']) => anchorOf(heading.replace(/\[([^\]]+)\]\([^)]*\)/g, '$1')));

test('every link of every page leads to a file, and its anchor to a heading', () => {
  const anchors = new Map(pages().map((page) => [addressOf(page), anchorsOf(page)]));
  const dead = pages().flatMap((page) =>
    linksOf(read(page))
      .filter((href) => {
        const [address = '', anchor] = (addressOfLink(page, href) ?? addressOf(page) + href).split('#');
        return !/^[a-z]+:/.test(href) && anchor !== undefined && !anchors.get(address)?.includes(anchor);
      })
      .map((href) => `${page}: ${href}`),
  );
  expect(dead).toEqual([]);
  expect(pages().length).toBeGreaterThan(50);
});

test('a link to a file that does not exist is an error that names page and link', () => {
  expect(() => addressOfLink('docs/trust.md', '../shared/gone.ts')).toThrow(
    'docs/trust.md: the link ../shared/gone.ts names no file of this repository',
  );
});

test('addresses: folders of a README, pages, sources and other hosts', () => {
  expect(published('slurm/README.md')).toBe('slurm/index.md');
  expect(published('site/helm/values.yaml.md')).toBe('source/helm/values.yaml.md');
  expect([
    addressOfLink('docs/README.md', '../README.md'),
    addressOfLink('docs/README.md', '../slurm/README.md#nodes'),
    addressOfLink('README.md', 'docs/trust.md'),
    addressOfLink('helm/README.md', 'swefarm/values.yaml'),
    addressOfLink('docs/trust.md', '#findings'),
    addressOfLink('docs/trust.md', 'https://example.org/'),
  ]).toEqual(['/', '/slurm/#nodes', '/docs/trust.html', '/source/helm/swefarm/values.yaml.html', null, null]);
});

test('a source that contains a code fence stays one code block; a folder lists its files', () => {
  expect(linkedSources()).toContain('helm/swefarm/values.yaml');
  expect(sourcePage('site/pages.test.ts')).toMatch(/^# site\/pages\.test\.ts\n\n````+ts\n/);
  expect(sourcePage('site')).toMatch(/^pages\.ts$/m);
});

test('anchors follow the rules of a forge', () => {
  expect(['What is sampled?', 'Images, and `rootfs`', 'a_b — c'].map(anchorOf)).toEqual([
    'what-is-sampled',
    'images-and-rootfs',
    'a_b--c',
  ]);
});

test('the index, and so the sidebar, lists every page of docs/', () => {
  const flat = (entries: Entry[]): Entry[] => entries.flatMap((entry) => [entry, ...flat(entry.items ?? [])]);
  const sidebar = sidebarOf(INDEX);
  expect(sidebar.map(({ text }) => text)).toEqual(['Use it', 'Look it up', 'Work on it']);
  const listed = flat(sidebar).map(({ link }) => link?.replace(/#.*/, ''));
  const absent = pages().filter((page) => page.startsWith('docs/') && !listed.includes(addressOf(page)));
  expect(absent).toEqual(['docs/README.md']);
});
