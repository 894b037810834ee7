/** The page comes into being when it is first needed: one build, however many processes and requests wait for it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import { errorMessage, UnusableError } from '@swefarm/shared';

/** Sources and, beside them, what is built of them; a bundle has only the latter. */
const PAGE = fileURLToPath(new URL('../../page/', import.meta.url));
/** Builds unless the page is current. */
const BUILD = join(PAGE, 'build.ts');
/** The kernel gives it back when its holder dies, however that happens. */
const LOCK = join(PAGE, 'dist.lock');
const BUILD_MS = 300_000;
/** After a build that failed, askers get its error for so long: each of them would start another. */
const REMEMBERED_MS = 10_000;
/** Characters of what a failed build said. */
const WORDS = 600;

export const PAGE_DIST = join(PAGE, 'dist');

/** It is there, and none of its sources is newer. */
export function pageIsCurrent(): boolean {
  const madeAt = statSync(join(PAGE_DIST, 'index.html'), { throwIfNoEntry: false })?.mtimeMs;
  if (madeAt === undefined) return false;
  if (!existsSync(BUILD)) return true;
  const folders = [join(PAGE, 'src'), join(PAGE, 'public')];
  return madeAt >= Math.max(statSync(join(PAGE, 'index.html')).mtimeMs, ...folders.map(newest));
}

const newest = (folder: string): number =>
  Math.max(0, ...readdirSync(folder, { recursive: true }).map((name) => mtimeOf(join(folder, `${name}`))));
const mtimeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;

let underway: Promise<void> | null = null;

/**
 * Resolves when the built page is there and current: whoever asks first builds it, which takes seconds, and the others wait.
 *
 * @param onBuild told when there is something to wait for
 * @throws UnusableError `page_not_built` with what to do about it
 */
export function ensurePage(onBuild: () => void = () => undefined): Promise<void> {
  underway ??= build(onBuild).catch((cause: unknown) => {
    setTimeout(() => {
      underway = null;
    }, REMEMBERED_MS).unref();
    throw new UnusableError(
      'page_not_built',
      `the page is not there and could not be built: ${errorMessage(cause)}; run "npm ci" and "npm run page" in the repository, as a user who may write ${PAGE}, then try again`,
      { cause },
    );
  });
  return underway;
}

async function build(onBuild: () => void): Promise<void> {
  if (pageIsCurrent()) return;
  onBuild();
  const child = spawn('flock', ['--no-fork', LOCK, process.execPath, BUILD, '--if-needed'], {
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: BUILD_MS,
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = `${said}${text}`.slice(0, 64_000);
  });
  const [code, signal] = await once(child, 'close');
  if (code === 0) return;
  throw new Error(`the build ended with ${code ?? signal}: ${firstWords(said) || 'it said nothing'}`);
}

/** What a failed build said, on one line, without Node's frame around it and the stack below. */
function firstWords(said: string): string {
  const lines = stripVTControlCharacters(said)
    .split('\n')
    .map((line) => line.trim());
  const from = Math.max(
    0,
    lines.findIndex((line) => /error|fail|denied|cannot/i.test(line)),
  );
  const until = lines.findIndex((line, at) => at > from && /^(at |Stack backtrace)/.test(line));
  const words = lines.slice(from, until < 0 ? undefined : until).filter((line) => /\w/.test(line));
  return words.join(' ').slice(0, WORDS);
}
