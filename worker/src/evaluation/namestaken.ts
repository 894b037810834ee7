/** Tests in a clean container whether new modules would replace modules of Python or installed modules with the same name. */
import type { CleanRunDeps } from './cleanrun.ts';

const TIMEOUT_MS = 60_000;
const OUTPUT_BYTES = 1024 * 1024;
/** Paths directly below a folder from which Python imports. */
const IMPORTABLE = /\/(?:lib\/python[\d.]+|lib-dynload|(?:site|dist)-packages)\/[^/]+$/;
/** Prints paths with the given names. Does not search inside packages, because only top-level modules can be replaced. */
const FIND =
  'find / -maxdepth 9 \\( -path /proc -o -path /sys -o -path /testbed \\) -prune -o -path "*-packages/*" \\( "$@" \\) -prune -print -o -path "*-packages/*" -prune -o -path "*/lib/python*" \\( "$@" \\) -print';

/** Returns true also when `find` fails. Throws the errors of a container start. */
export async function namesTaken(
  names: readonly string[],
  { container: start, removals, signal }: Pick<CleanRunDeps, 'container' | 'removals' | 'signal'>,
): Promise<boolean> {
  const container = await start();
  try {
    const patterns = names.flatMap((name, index) => [
      ...(index > 0 ? ['-o'] : []),
      ...['-name', name, '-o', '-name', `${name}.py`, '-o', '-name', `${name}.*.so`],
    ]);
    const { output, exitCode } = await container.exec(['/bin/sh', '-c', FIND, 'sh', ...patterns], {
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
