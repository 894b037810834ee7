/**
 * How each command of swefarm starts: on a Node that strips types, this one or the one that comes with the dependencies,
 * from what was compiled before, and what runs for days or over large stores with settings that Node reads only at its start. Plain JavaScript, for
 * older Nodes must read it.
 */
import { spawn } from 'node:child_process';
import * as modules from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { compiledOf } from './compiled.mjs';
import { listenEarly } from './earlystop.mjs';
import { COMPILED, LASTING } from './lasting.mjs';

/**
 * Runs the command whose TypeScript is imported by `start` in this process where that is possible, else in a child whose end it shares.
 * `source`: where that lies, from `root` (a URL), for a command that is compiled (compile/checkout.mjs). `lasting`: a service, or an export,
 * to be started with the settings above. `endsEarlyWith`: the exit code of a service that a signal ends before it has begun.
 */
export async function launch({ name, source, root, start, lasting, endsEarlyWith }) {
  const flags = lasting ? LASTING.flags : [];
  const env = { ...(lasting ? LASTING.settings : {}), NODE_COMPILE_CACHE: COMPILED, ...process.env };
  const args = [...flags, ...process.execArgv, ...process.argv.slice(1)];
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major < 22 || (major === 22 && minor < 18)) return inPackagedNode(name, args, env);
  const ready = flags.every((flag) => process.execArgv.includes(flag));
  // In place, where the system can: the process keeps its id, its signals and its parent.
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
      `${name} needs Node 22.18 or newer (this is ${process.versions.node}); install it, or run: npm ci`,
    );
    process.exit(2);
  }
  const child = spawn(node, args, { stdio: 'inherit', env });
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
  // From a terminal Ctrl-C comes twice then, directly and through us; commands count two within a moment as one.
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
