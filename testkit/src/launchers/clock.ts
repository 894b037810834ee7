/** Another time of day for one process, as a node with a wrong clock has it. */
import { access, readdir } from 'node:fs/promises';
import { UnusableError } from '@swefarm/shared';

/** Variables with which a process sees another time of day: `+1d`, as faketime takes it; spans stay as long as they are. Throws UnusableError without libfaketime. */
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
