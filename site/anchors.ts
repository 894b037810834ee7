/** Checks the links between the built pages. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Returns the anchor of a heading by the rules of GitHub, so that a link works on the site and on a forge. */
export const anchorOf = (heading: string): string =>
  heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, '')
    .replaceAll(' ', '-');

/**
 * Returns a line for each link of a built page that leads to no page, or to no element of a page.
 *
 * @param base of the addresses, with a slash at its end
 */
export function deadLinks(folder: string, base: string): string[] {
  const names = globSync('**/*.html', { cwd: folder });
  const pages = new Map(names.map((name) => [name, readFileSync(join(folder, name), 'utf8')]));
  const anchors = new Map([...pages].map(([name, html]) => [name, new Set(attributes(html, 'id'))]));
  return [...pages].flatMap(([name, html]) => {
    const address = new URL(`http://site${base}${name}`);
    return [...new Set(attributes(html, 'href'))].flatMap((href) => {
      const target = new URL(href, address);
      if (target.host !== address.host || /\.(css|js|woff2|svg)$/.test(target.pathname)) return [];
      const path = decodeURI(target.pathname);
      const file = (path.startsWith(base) ? path.slice(base.length) : path).replace(
        /(^|\/)$/,
        '$1index.html',
      );
      const found = anchors.get(file);
      const anchor = decodeURIComponent(target.hash.slice(1));
      if (!found) return `${name}: ${href} leads to no page`;
      return anchor === '' || found.has(anchor) ? [] : `${name}: ${href} leads to no heading`;
    });
  });
}

const attributes = (html: string, attribute: string): string[] =>
  [...html.matchAll(new RegExp(` ${attribute}="([^"]*)"`, 'g'))].map(([, value = '']) =>
    value.replaceAll('&amp;', '&'),
  );
