/** Gives one process a wrong time of day, as on a node with a wrong clock. */
import { access, readdir } from 'node:fs/promises';
import { UnusableError } from '@swefarm/shared';

/** Environment variables that shift a process's time of day (`+1d`, in faketime's syntax); durations are unchanged. Throws UnusableError without libfaketime. */
export async function shiftedClock(offset: string): Promise<Record<string, string>> {
  const found = await Promise.all(
    (await readdir('/usr/lib')).map(async (folder) => {
      const path = `/usr/lib/${folder}/faketime/libfaketimeMT.so.1`;
      return await access(path).then(
        () => [path],
        () => [],
      );
    }),
  );
  const [library] = found.flat();
  if (!library)
    throw new UnusableError('faketime_missing', 'no libfaketime: testkit/setup/setup.sh faketime');
  return { LD_PRELOAD: library, FAKETIME: offset, FAKETIME_DONT_FAKE_MONOTONIC: '1' };
}
