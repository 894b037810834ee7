/** Reads the sidebar from the tables of `docs/README.md`, so that the index and the sidebar have the same entries. */
import { addressOfLink } from './pages.ts';

export type Entry = { text: string; link?: string; items?: Entry[]; collapsed?: boolean };

const INDEX = 'docs/README.md';

/**
 * Returns a group for each section of the index. A row that begins with links is one entry for each link. A row that begins with
 * other text is a group of the links in its second cell.
 */
export function sidebarOf(index: string): Entry[] {
  return index
    .split(/^## /m)
    .slice(1)
    .map((section) => {
      const [title = '', ...lines] = section.split('\n');
      return { text: title, collapsed: false, items: lines.flatMap(entriesOf) };
    });
}

function entriesOf(row: string): Entry[] {
  const [, first = '', second = ''] = row.split('|').map((cell) => cell.trim());
  const own = linksIn(first);
  if (own.length > 0 || first.startsWith('-')) return own;
  const items = linksIn(second);
  return first === '' ? items : [{ text: capitalised(first), collapsed: true, items }];
}

const linksIn = (cell: string): Entry[] =>
  [...cell.matchAll(/\[([^\]]+)\]\(([^)]+)\)/g)].map(([, text = '', href = '']) => ({
    text: capitalised(text),
    link: addressOfLink(INDEX, href) ?? href,
  }));

const capitalised = (text: string): string => {
  const plain = text.replaceAll('`', '');
  return plain.charAt(0).toUpperCase() + plain.slice(1);
};
