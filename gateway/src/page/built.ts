/** Builds the page at its first use, once for all processes and requests. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import { errorMessage, UnusableError } from '@swefarm/shared';

/** Folder of the page's sources and of the built page. A bundle contains only the built page. */
const PAGE = fileURLToPath(new URL('../../page/', import.meta.url));
const BUILD = join(PAGE, 'build.ts');
/** Lock file of `flock`, which the kernel unlocks when the process dies. */
const LOCK = join(PAGE, 'dist.lock');
const BUILD_MS = 300_000;
/** Time after a failed build in which requests get the error of this build. Later requests start a new build. */
const REMEMBERED_MS = 10_000;
const MESSAGE_LENGTH = 600;

export const PAGE_DIST = join(PAGE, 'dist');

/**
 * Returns whether the built page exists and is newer than its sources, including those of other packages. In a bundle without sources,
 * an existing page is current.
 */
export function pageIsCurrent(): boolean {
  const madeAt = statSync(join(PAGE_DIST, 'index.html'), { throwIfNoEntry: false })?.mtimeMs;
  if (madeAt === undefined) return false;
  if (!existsSync(BUILD)) return true;
  const folders = ['src', 'public', '../src', '../../shared/src', '../../trajectories/src/output'].map(
    (folder) => join(PAGE, folder),
  );
  return madeAt >= Math.max(statSync(join(PAGE, 'index.html')).mtimeMs, ...folders.map(newest));
}

function newest(folder: string): number {
  const paths = readdirSync(folder, { recursive: true }).map((name) => join(folder, `${name}`));
  return Math.max(0, ...paths.map((path) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0));
}

let underway: Promise<void> | null = null;

/**
 * Resolves when the built page is current. The first call builds a missing or outdated page, which takes seconds.
 *
 * @param onBuild called when the build starts
 * @throws UnusableError `page_not_built`
 */
export function ensurePage(onBuild: () => void = () => undefined): Promise<void> {
  underway ??= build(onBuild).catch((cause: unknown) => {
    setTimeout(() => {
      underway = null;
    }, REMEMBERED_MS).unref();
    throw new UnusableError(
      'page_not_built',
      `cannot build the page: ${errorMessage(cause)}; run "npm ci" and "npm run page" in the repository, as a user who may write ${PAGE}, then retry`,
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
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output = `${output}${text}`.slice(0, 64_000);
  });
  const [code, signal] = await once(child, 'close');
  if (code === 0) return;
  throw new Error(`the build ended with ${code ?? signal}: ${messageOf(output) || 'no output'}`);
}

/** Returns the message of a failed build on one line: from the first line that names an error to the stack. */
function messageOf(output: string): string {
  const lines = stripVTControlCharacters(output)
    .split('\n')
    .map((line) => line.trim());
  const from = Math.max(
    0,
    lines.findIndex((line) => /error|fail|denied|cannot/i.test(line)),
  );
  const until = lines.findIndex((line, at) => at > from && /^(at |Stack backtrace)/.test(line));
  const message = lines.slice(from, until < 0 ? undefined : until).filter((line) => /\w/.test(line));
  return message.join(' ').slice(0, MESSAGE_LENGTH);
}
