/** Configuration of VitePress. The pages are the Markdown files of the repository, where they are. */
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { anchorOf, deadLinks } from '../anchors.ts';
import { addressOfLink, EXCLUDED, pages, published, ROOT } from '../pages.ts';
import { sidebarOf } from '../sidebar.ts';

type Token = {
  type: string;
  attrGet(name: string): string | null;
  attrSet(name: string, value: string): void;
  children: Token[] | null;
};
type Markdown = {
  core: {
    ruler: { push(name: string, rule: (state: { tokens: Token[]; env: { path: string } }) => void): void };
  };
};

const { version, description } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

/** Replaces each link to a file of the repository by the address of its page. */
function linkPages(markdown: Markdown): void {
  markdown.core.ruler.push('link-pages', ({ tokens, env }) => {
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      if (token.type !== 'link_open') continue;
      const address = addressOfLink(relative(ROOT, env.path), token.attrGet('href') ?? '');
      if (address !== null) token.attrSet('href', address);
    }
  });
}

/** Leaves Vue to Node in the bundle of the server, because pages outside of `site/` find no Vue beside them. */
const vueOfSite = {
  name: 'vue-of-site',
  enforce: 'pre',
  resolveId: (id: string, _importer: string | undefined, { ssr }: { ssr?: boolean }) =>
    ssr && /^vue($|\/)/.test(id) ? { id, external: true } : null,
};

type Built = { outDir: string; pages: string[]; site: { base: string } };

function check({ outDir, pages: built, site }: Built): void {
  const missing = pages().filter((page) => !built.includes(page));
  const problems = [...missing.map((page) => `${page}: no page was built`), ...deadLinks(outDir, site.base)];
  if (problems.length > 0) throw new Error(`the site has dead links:\n${problems.join('\n')}`);
}

export default {
  title: 'swefarm',
  description,
  lang: 'en',
  srcDir: '..',
  srcExclude: EXCLUDED,
  outDir: './dist',
  cacheDir: './node_modules/.cache/vitepress',
  rewrites: published,
  transformHead: ({ siteData }: { siteData: { base: string } }) => [
    ['link', { rel: 'icon', type: 'image/svg+xml', href: `${siteData.base}mark.svg` }],
  ],
  vite: {
    build: { target: 'es2022' },
    publicDir: join(ROOT, 'gateway/page/public'),
    plugins: [vueOfSite],
  },
  markdown: {
    html: false,
    // The default themes have colours whose contrast is too low.
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    anchor: { slugify: anchorOf },
    config: linkPages,
    languageAlias: { sbatch: 'bash' },
  },
  themeConfig: {
    logo: '/mark.svg',
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      { text: 'Quickstart', link: '/docs/quickstart.html' },
      { text: 'All pages', link: '/docs/' },
      { text: `Version ${version}`, link: '/CHANGELOG.html' },
    ],
    sidebar: sidebarOf(readFileSync(join(ROOT, 'docs/README.md'), 'utf8')),
  },
  buildEnd: check,
};
