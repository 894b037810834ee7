/**
 * Starts a command in a Node that can run it: this one, or the one in the dependencies. Compiled files are used if they are up to date. This
 * file is plain JavaScript because older versions of Node cannot load TypeScript.
 */
import { spawn } from 'node:child_process';
import * as modules from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { compiledOf, isNewEnough, OLDEST_NODE } from './compiled.mjs';
import { listenEarly } from './earlystop.mjs';
import { COMPILED, LASTING } from './lasting.mjs';

/**
 * Runs a command in this process if possible, otherwise in a child. `start` imports the TypeScript; `source` is its path from `root` (a
 * URL). `lasting`: apply the options for long-running commands. `endsEarlyWith`: exit code if a signal stops a service while it loads.
 */
export async function launch({ name, source, root, start, lasting, endsEarlyWith }) {
  const flags = lasting ? LASTING.flags : [];
  const env = { ...(lasting ? LASTING.settings : {}), NODE_COMPILE_CACHE: COMPILED, ...process.env };
  const args = [...flags, ...process.execArgv, ...process.argv.slice(1)];
  if (!isNewEnough()) return inPackagedNode(name, args, env);
  const ready = flags.every((flag) => process.execArgv.includes(flag));
  // execve preserves the process id, the parent process and ignored signals.
  if (!ready && process.execve) process.execve(process.execPath, [process.execPath, ...args], env);
  if (endsEarlyWith !== undefined) listenEarly(endsEarlyWith);
  modules.enableCompileCache(COMPILED);
  const compiled = source === undefined ? null : compiledOf(source, fileURLToPath(root));
  await (compiled === null ? start() : import(compiled));
}

function inPackagedNode(name, args, env) {
  let node;
  try {
    const packaged = modules
      .createRequire(import.meta.url)
      .resolve(`node-linux-${process.arch}/package.json`);
    node = join(dirname(packaged), 'bin', 'node');
  } catch {
    console.error(
      `${name} needs Node ${OLDEST_NODE} or newer (this is ${process.versions.node}) or the optional package node-linux-${process.arch}, which npm installs unless dependencies of this kind are omitted`,
    );
    process.exit(2);
  }
  const child = spawn(node, args, { stdio: 'inherit', env });
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
  // In a terminal the child receives Ctrl-C twice: from the terminal and from here. Commands count both as one.
  for (const signal of signals) process.on(signal, () => child.kill(signal));
  child.on('error', (error) => {
    console.error(`${name}: ${node} cannot be started: ${error.message}`);
    process.exit(12);
  });
  child.on('exit', (code, signal) => {
    if (signal) {
      for (const one of signals) process.removeAllListeners(one);
      process.kill(process.pid, signal);
    }
    process.exit(code ?? 12);
  });
}
