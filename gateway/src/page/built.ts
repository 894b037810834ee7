/** Builds the page when it is first needed: one build, however many processes and requests wait for it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import { errorMessage, UnusableError } from '@swefarm/shared';

/** The sources and, beside them, the built page; a bundle has only the latter. */
const PAGE = fileURLToPath(new URL('../../page/', import.meta.url));
/** Builds unless the page is current. */
const BUILD = join(PAGE, 'build.ts');
/** A lock of the kernel, which it releases however its holder dies. */
const LOCK = join(PAGE, 'dist.lock');
const BUILD_MS = 300_000;
/** A failed build is not tried again for so long: requests get its error. */
const REMEMBERED_MS = 10_000;
/** Characters of the message of a failed build. */
const MESSAGE_LENGTH = 600;

export const PAGE_DIST = join(PAGE, 'dist');

/** Whether the built page is there, and none of its sources, or of the packages' that it counts with, is newer. */
export function pageIsCurrent(): boolean {
  const madeAt = statSync(join(PAGE_DIST, 'index.html'), { throwIfNoEntry: false })?.mtimeMs;
  if (madeAt === undefined) return false;
  if (!existsSync(BUILD)) return true;
  const folders = ['src', 'public', '../src', '../../shared/src', '../../trajectories/src/output'].map(
    (folder) => join(PAGE, folder),
  );
  return madeAt >= Math.max(statSync(join(PAGE, 'index.html')).mtimeMs, ...folders.map(newest));
}

const newest = (folder: string): number =>
  Math.max(0, ...readdirSync(folder, { recursive: true }).map((name) => mtimeOf(join(folder, `${name}`))));
const mtimeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;

let underway: Promise<void> | null = null;

/**
 * Resolves when the built page is there and current: the first caller builds it, which takes seconds, and the others wait.
 *
 * @param onBuild called when the build starts
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
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output = `${output}${text}`.slice(0, 64_000);
  });
  const [code, signal] = await once(child, 'close');
  if (code === 0) return;
  throw new Error(`the build ended with ${code ?? signal}: ${messageOf(output) || 'it wrote nothing'}`);
}

/** The message of a failed build on one line, without Node's frame around it and the stack below. */
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
