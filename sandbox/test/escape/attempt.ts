/** An attempt to leave a sandbox, or to harm the node from inside. */
import type { Shell } from '../../src/command.ts';
import type { Container, ContainerSpec, Limits } from '../../src/runtime.ts';
import { NEVER, PATH, TEST_IMAGE_MARKER } from '../subject.ts';
import type { Host } from './host.ts';

export type Attempt = {
  name: string;
  /** Runs only in `npm run ci:full`. */
  slow?: true;
  network?: ContainerSpec['network'];
  limits?: Partial<Limits>;
  run(sandbox: {
    container: Container;
    shell: Shell;
    host: Host;
    neighbourPort: number;
  }): Promise<string | null>;
};

/**
 * Runs a Python program in the sandbox. Returns its lines that begin with GOT, which name its gains; null without such a line. The
 * program has `libc` with errno, and the functions `got`, `call` and `attempt`.
 */
export async function python(
  container: Container,
  program: string,
  timeoutMs = 30_000,
): Promise<string | null> {
  const head = `import ctypes, os, socket, sys, time, errno
assert os.path.exists("${TEST_IMAGE_MARKER}")
libc = ctypes.CDLL(None, use_errno=True)
def got(what): print("GOT", what, flush=True)
def call(name, *args):
    if getattr(libc, name)(*args) != -1: got(name)
def attempt(what, work):
    try:
        work(); got(what)
    except OSError: pass
`;
  const result = await container.exec(['python3', '-c', head + program], {
    env: { PATH },
    cwd: '/tmp',
    timeoutMs,
    maxOutputBytes: 20_000,
    signal: NEVER,
  });
  const output = result.output.toString();
  const lines = output.split('\n').filter((line) => line.startsWith('GOT '));
  if (lines.length === 0 && /Traceback|AssertionError/.test(output)) throw new Error(output);
  return lines.length > 0 ? lines.join('; ') : null;
}
