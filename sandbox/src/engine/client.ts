/** Opens clients of container engines. Loads no more of the library than what speaks over a socket, and that at the first use. */
import { createRequire } from 'node:module';
import type Docker from 'dockerode';

// The bundle replaces this line: see slurm/bundle.mjs.
const require = createRequire(import.meta.url);

/**
 * What the library loads at once for its sessions of BuildKit and for engines over ssh; the farm asks for neither. Without them a
 * worker starts 70 ms of CPU earlier and takes 19 MB less. By the package that loads each.
 */
const UNUSED: readonly (readonly [by: string, name: string])[] = [
  ['dockerode', '@grpc/grpc-js'],
  ['dockerode', '@grpc/proto-loader'],
  ['docker-modem', 'ssh2'],
];

let library: typeof Docker | null = null;

/** @param socketPath the engine's unix socket; it is opened by the first request. */
export function openEngine(socketPath: string): Docker {
  library ??= loadLibrary();
  return new library({ socketPath });
}

function loadLibrary(): typeof Docker {
  for (const [by, name] of UNUSED) leaveOut(by, name);
  return require('dockerode') as typeof Docker;
}

/** Puts an empty module where the package would be. A bundle leaves it out when it is made, and has nothing to resolve. */
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
