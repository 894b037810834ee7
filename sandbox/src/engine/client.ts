/**
 * Opens clients of container engines. The library is loaded at the first use, without the packages that it needs only for ssh
 * and BuildKit.
 */
import { createRequire } from 'node:module';
import type Docker from 'dockerode';

// compile/pieces.mjs removes this line, so that the bundler sees the packages.
const require = createRequire(import.meta.url);

/**
 * Packages for BuildKit and for engines over ssh, with the package that loads each. Their omission saves a worker 70 ms of CPU at the
 * start, and 19 MB of memory.
 */
const UNUSED: readonly (readonly [by: string, name: string])[] = [
  ['dockerode', '@grpc/grpc-js'],
  ['dockerode', '@grpc/proto-loader'],
  ['docker-modem', 'ssh2'],
];

let library: typeof Docker | null = null;

/** @param socketPath the engine's unix socket, which the first request opens */
export function openEngine(socketPath: string): Docker {
  library ??= loadLibrary();
  return new library({ socketPath });
}

function loadLibrary(): typeof Docker {
  for (const [by, name] of UNUSED) leaveOut(by, name);
  return require('dockerode') as typeof Docker;
}

/** Replaces a package by an empty module. A bundle does not contain the package, so a missing package is no error. */
function leaveOut(by: string, name: string): void {
  try {
    const library = createRequire(require.resolve('dockerode'));
    const id = (by === 'dockerode' ? library : createRequire(library.resolve(by))).resolve(name);
    const empty = { id, path: id, filename: id, exports: {}, loaded: true, children: [], paths: [] };
    require.cache[id] ??= Object.assign(Object.create(null) as NodeJS.Module, empty);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw error;
  }
}
