/** Asks a clean container which names of modules are those of Python's own or of installed ones: a new module with such a name replaces one. */
import type { CleanRunDeps } from './cleanrun.ts';

const TIMEOUT_MS = 60_000;
const OUTPUT_BYTES = 1024 * 1024;
/** Directly below a folder from which Python imports. */
const IMPORTABLE = /\/(?:lib\/python[\d.]+|lib-dynload|(?:site|dist)-packages)\/[^/]+$/;
/** Packages are not entered: only what stands at their top can be replaced. */
const LOOKS =
  'find / -maxdepth 9 \\( -path /proc -o -path /sys -o -path /testbed \\) -prune -o -path "*-packages/*" \\( "$@" \\) -prune -print -o -path "*-packages/*" -prune -o -path "*/lib/python*" \\( "$@" \\) -print';

/** True also where the container cannot tell. Throws whatever the runtime throws at start. */
export async function namesTaken(
  names: readonly string[],
  { container: start, removals, signal }: Pick<CleanRunDeps, 'container' | 'removals' | 'signal'>,
): Promise<boolean> {
  const container = await start();
  try {
    const asked = names.flatMap((name, index) => [
      ...(index > 0 ? ['-o'] : []),
      ...['-name', name, '-o', '-name', `${name}.py`, '-o', '-name', `${name}.*.so`],
    ]);
    const { output, exitCode } = await container.exec(['/bin/sh', '-c', LOOKS, 'sh', ...asked], {
      timeoutMs: TIMEOUT_MS,
      maxOutputBytes: OUTPUT_BYTES,
      standing: 'clean',
      signal,
    });
    const paths = output.toString('utf8').split('\n');
    // find exits with 1 when it may not read a folder.
    return exitCode === null || exitCode > 1 || paths.some((path) => IMPORTABLE.test(path));
  } finally {
    await removals.remove(container);
  }
}
