/** Finds a container's control group and overlay, if this process shares the host with the engine. */
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import type Docker from 'dockerode';
import type { MemoryGroup } from '../memorygroup.ts';
import { readProcessFile } from '../namespaces/processes.ts';
import type { Layer } from '../overlay.ts';
import { answerAbout } from './stoppedstarts.ts';

/** Returns the memory control group; null if this process does not see the engine's processes. */
export async function findGroup(pid: number, id: string): Promise<MemoryGroup | null> {
  const lines = (await readProcessFile(pid, 'cgroup')).split('\n');
  // A process with the same pid in another process namespace lacks this container's id in its group.
  if (!lines.some((line) => line.includes(id))) return null;
  const version1 = lines.find((line) => /^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:/.test(line));
  if (version1)
    return { folder: `/sys/fs/cgroup/memory${version1.slice(version1.indexOf(':/') + 1)}`, version: 1 };
  const version2 = lines.find((line) => line.startsWith('0::'));
  return version2 ? { folder: `/sys/fs/cgroup${version2.slice(3)}`, version: 2 } : null;
}

/** Returns the folders with the container's changes and image; null if this process cannot read them. */
export const findLayer = (container: Docker.Container): Promise<Layer | null> =>
  answerAbout(container, container.inspect())
    .then(async (found) => {
      const { GraphDriver } = found as {
        GraphDriver?: { Data?: { UpperDir?: string; LowerDir?: string } | null };
      };
      const { UpperDir: upper, LowerDir = '' } = GraphDriver?.Data ?? {};
      if (upper === undefined) return null;
      await access(upper, constants.R_OK | constants.X_OK);
      return { at: '/', upper, lowers: LowerDir.split(':').filter(Boolean) };
    })
    .catch(() => null);
