/** Lists the files that are pages of the site, and the source files that get a page because a page links to them. */
import { existsSync, globSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { extname, join, posix, resolve } from 'node:path';

export const ROOT = resolve(import.meta.dirname, '..');
const PAGES: ReadonlySet<string> = new Set(
  globSync(['*.md', 'docs/**/*.md', '*/README.md', 'examples/*/README.md'], { cwd: ROOT }),
);
/** Patterns of Markdown files that are no pages. The route of source files is the only page in `site/`. */
export const EXCLUDED = [
  '!(docs|examples)/*/**',
  '!(docs|site)/!(README).md',
  'examples/*/!(README).md',
  'examples/*/*/**',
];
const ROUTE = 'site/';

/** Paths of all pages, from the root. */
export const pages = (): string[] => [...PAGES].toSorted();

/** Returns the path at which VitePress publishes a page: `README.md` is the index of its folder. */
export const published = (path: string): string =>
  path.startsWith(ROUTE) ? `source/${path.slice(ROUTE.length)}` : path.replace(/README\.md$/, 'index.md');

/** Returns the address of a page or of a source file, below the base of the site. */
export const addressOf = (path: string): string =>
  PAGES.has(path)
    ? `/${published(path)
        .replace(/(^|\/)index\.md$/, '$1')
        .replace(/\.md$/, '.html')}`
    : `/source/${path}.html`;

/**
 * Returns the address for a link of a page, or null for a link to another host or within the page.
 *
 * @throws Error if the link names no file of the repository
 */
export function addressOfLink(page: string, href: string): string | null {
  const path = targetOf(page, href);
  if (path === null) return null;
  if (!existsSync(join(ROOT, path)))
    throw new Error(`${page}: the link ${href} names no file of this repository`);
  return addressOf(path) + (/#.*$/.exec(href)?.[0] ?? '');
}

function targetOf(page: string, href: string): string | null {
  if (/^([a-z]+:|#|\/\/)/i.test(href)) return null;
  return posix.join(posix.dirname(page), href.replace(/#.*$/, '')).replace(/\/$/, '');
}

/** Returns the links of a Markdown text, without code blocks and images. */
export const linksOf = (markdown: string): string[] =>
  [...markdown.replace(/^```.*?^```/gms, '').matchAll(/(?<!!\[[^\]]*)\]\(([^)\s]+)\)/g)].map(
    ([, href = '']) => href,
  );

/** Returns the linked files and folders that have no page of their own. */
export function linkedSources(): string[] {
  const found = pages().flatMap((page) =>
    linksOf(readFileSync(join(ROOT, page), 'utf8')).flatMap((href) => targetOf(page, href) ?? []),
  );
  return [...new Set(found)].filter((path) => !PAGES.has(path) && existsSync(join(ROOT, path))).toSorted();
}

/** Returns the Markdown of the page for a source file, or for a folder with its files. */
export function sourcePage(path: string): string {
  const full = join(ROOT, path);
  const text = statSync(full).isDirectory()
    ? readdirSync(full, { recursive: true, encoding: 'utf8' }).toSorted().join('\n')
    : readFileSync(full, 'utf8');
  const fence = '`'.repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map(([run]) => run.length + 1)));
  return `# ${path}\n\n${fence}${extname(path).slice(1)}\n${text.trimEnd()}\n${fence}\n`;
}
