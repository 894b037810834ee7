/** The Debian tree below all examples: a cached debootstrap, then the Python environment that they share. */
import { glob, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { SwefarmError } from '@swefarm/shared';
import { cached } from './cache.ts';
import { inTree, MAKE_ENVIRONMENT, writeActivate } from './environment.ts';
import type { BaseRecipe } from './recipe.ts';
import { has, run } from './run.ts';

/** Explains in one line, with the remedy, why no Debian tree can be made here; null when it can. */
export async function debianProblem(signal: AbortSignal): Promise<string | null> {
  if (process.getuid?.() !== 0) return 'debootstrap needs root: run this as root once';
  if (!(await has('debootstrap', signal))) return 'no debootstrap: apt-get install -y debootstrap';
  return null;
}

/** Returns the tree at `path` and makes it if it is missing. Throws SwefarmError `example_debian`. */
export async function makeDebianTree(
  path: string,
  base: BaseRecipe,
  wheels: () => Promise<string>,
  note: (line: string) => void,
  signal: AbortSignal,
): Promise<string> {
  return cached(path, async (draft) => {
    const mirror = await configuredMirror('/etc/apt', base.suite);
    note(`base: debootstrap ${base.suite} from ${mirror ?? "debootstrap's own mirror"}`);
    const [fetched] = await Promise.all([wheels(), debootstrap(draft, base, mirror, signal)]);
    for (const pattern of base.prune) {
      for await (const name of glob(pattern, { cwd: draft })) {
        await rm(join(draft, name), { recursive: true, force: true });
      }
    }
    note('base: Python environment');
    await writeActivate(draft);
    await inTree({ kind: 'dir', path: draft }, MAKE_ENVIRONMENT, { setup: fetched, signal });
  });
}

async function debootstrap(
  dest: string,
  base: BaseRecipe,
  mirror: string | null,
  signal: AbortSignal,
): Promise<void> {
  const include = `--include=${base.packages.join(',')}`;
  const env = { ...process.env, ...(await aptProxy(signal)), DEBIAN_FRONTEND: 'noninteractive' };
  try {
    await run(['debootstrap', '--variant=minbase', include, base.suite, dest, ...(mirror ? [mirror] : [])], {
      env,
      signal,
    });
  } catch (cause) {
    if (signal.aborted) throw cause;
    const log = await readFile(join(dest, 'debootstrap/debootstrap.log'), 'utf8').catch(() => '');
    const tail = log.trim().split('\n').slice(-5).join('\n');
    throw new SwefarmError('example_debian', `debootstrap failed${tail && `:\n${tail}`}`, { cause });
  }
}

/** debootstrap reads the proxy from the environment, not from apt's settings. */
async function aptProxy(signal: AbortSignal): Promise<Record<string, string>> {
  if (process.env.http_proxy !== undefined || !(await has('apt-config', signal))) return {};
  const dump = await run(['apt-config', 'dump', 'Acquire::http::Proxy'], { signal, allow: [0, 100] });
  const value = /^Acquire::http::Proxy "([^"]+)";$/m.exec(dump.stdout)?.[1];
  return value === undefined || value === 'DIRECT' ? {} : { http_proxy: value };
}

/** The mirror that this machine's apt uses for the suite; null when there is none: debootstrap then uses its default. */
export async function configuredMirror(aptDir: string, suite: string): Promise<string | null> {
  const parts = await readdir(join(aptDir, 'sources.list.d')).catch(() => []);
  const names = ['sources.list', ...parts.sort().map((name) => join('sources.list.d', name))];
  for (const name of names) {
    const text = await readFile(join(aptDir, name), 'utf8').catch(() => '');
    const found = name.endsWith('.sources') ? stanzaMirror(text, suite) : lineMirror(text, suite);
    if (found !== null) return found.replace(/\/+$/, '');
  }
  return null;
}

function lineMirror(text: string, suite: string): string | null {
  for (const line of text.split('\n')) {
    const entry = /^\s*deb\s+(?:\[[^\]]*\]\s+)?(https?:\S+)\s+(\S+)\s/.exec(`${line} `);
    if (entry?.[2] === suite) return entry[1] ?? null;
  }
  return null;
}

function stanzaMirror(text: string, suite: string): string | null {
  for (const stanza of text.split(/\n\s*\n/)) {
    const words = (field: string) =>
      new RegExp(`^${field}:(.*)$`, 'im').exec(stanza)?.[1]?.trim().split(/\s+/) ?? [];
    if (/^enabled:\s*no\b/im.test(stanza) || !words('Types').includes('deb')) continue;
    const uri = words('URIs').find((word) => word.startsWith('http'));
    if (words('Suites').includes(suite) && uri !== undefined) return uri;
  }
  return null;
}
