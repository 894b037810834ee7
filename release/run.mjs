// Runs the programs of other projects that build and publish.
import { execFile, spawn } from 'node:child_process';
import { promisify } from 'node:util';
import { ROOT } from '../compile/pieces.mjs';

/** A program that is missing or failed. */
export class Failure extends Error {}

/** Runs a program with all output on standard error, because standard output is for the JSON lines of the artefacts. Throws Failure. */
export function show(command, args, { env = {}, cwd = ROOT } = {}) {
  return new Promise((done, fail) => {
    const child = spawn(command, args, { cwd, stdio: ['ignore', 2, 2], env: { ...process.env, ...env } });
    child.on('error', (error) => fail(new Failure(`${command} cannot be started: ${error.message}`)));
    child.on('exit', (code, signal) =>
      code === 0
        ? done()
        : fail(new Failure(`${command} ${args.slice(0, 3).join(' ')} ended with ${signal ?? code}`)),
    );
  });
}

/** Runs a program and returns its standard output. Throws an Error with `stderr` if the program fails. */
export async function output(command, args) {
  const { stdout } = await promisify(execFile)(command, args, { cwd: ROOT, maxBuffer: 1 << 26 });
  return stdout.trim();
}

/** Returns the name of an engine that answers, preferably Docker; null: none. */
export async function engine() {
  for (const name of ['docker', 'podman'])
    if (await output(name, ['info', '--format', '{{json .}}']).catch(() => null)) return name;
  return null;
}
