/** Tests that a command loads only its own code, which keeps `--help` fast and processes small. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/**
 * Loaded before the command. Prints the loaded files at the end, one per line. Imports of our packages are replaced by imports of the
 * files that define the names, as in compiled commands.
 */
const WATCH = `data:text/javascript,${encodeURIComponent(`
import { readFileSync, writeSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { pastFronts } from '${new URL('../../compile/pieces.mjs', import.meta.url)}';
const seen = [];
registerHooks({
  load(url, context, next) {
    seen.push(url);
    if (!url.endsWith('.ts')) return next(url, context);
    return { format: 'module-typescript', source: pastFronts(readFileSync(new URL(url), 'utf8')), shortCircuit: true };
  },
});
process.on('exit', () => writeSync(2, seen.join('\\n')));`)}`;

/** Runs a command and returns the paths of the loaded sources and packages in this repository. */
async function loadedBy(...line: readonly string[]): Promise<string[]> {
  const [bin = '', ...args] = line;
  // Compiled commands would load other files.
  const command = ['--conditions=sources', '--import', WATCH, `${ROOT}${bin}`, ...args];
  const { stderr } = await promisify(execFile)(process.execPath, command, { maxBuffer: 1 << 24 });
  const files = stderr.split('\n').filter((url) => url.startsWith('file:'));
  return files.map((url) => fileURLToPath(url).slice(ROOT.length));
}

const SWEFARM = 'producer/bin/swefarm.mjs';

test('the help of swefarm loads only the list of commands and the parser of options', async () => {
  const loaded = await loadedBy(SWEFARM, '--help');
  expect(loaded).toContain('producer/src/cli/commands.ts');
  const others = /^(\w+\/src\/(?!cli\/(main|commands|exit)\.ts)|node_modules\/(?!commander\/))/;
  expect(loaded.filter((path) => others.test(path))).toEqual([]);
});

/** `without`: packages and folders that a command must not load. */
test.each<[what: string, without: RegExp, ...line: string[]]>([
  [
    'status reads no rows and no settings file',
    /^grading|^datasets\/src\/(read|row)\.ts|\/formats\/|node_modules\/(yaml|hyparquet|pino-pretty|ioredis)/,
    SWEFARM,
    'status',
  ],
  [
    'rollout writes no export and reads no parquet',
    /\/formats\/(registry|atif|sft)|node_modules\/(yaml|hyparquet|pino-pretty)/,
    SWEFARM,
    'rollout',
  ],
  [
    'a worker opens its runtime first',
    /sandbox\/src\/(docker|rootfs|apptainer)\/runtime|node_modules\/(dockerode|ssh2|@grpc|undici)/,
    'worker/bin/swefarm-worker.mjs',
    'run',
  ],
])('%s', async (_, without, ...line) => {
  const loaded = await loadedBy(...line, '--help');
  expect(loaded.length).toBeGreaterThan(100);
  expect(loaded.filter((path) => without.test(path))).toEqual([]);
});
