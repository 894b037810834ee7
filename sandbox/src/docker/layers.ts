/** Finds the overlay folders of a container, if this process shares the host with the engine. */
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import type Docker from 'dockerode';
import type { Layer } from '../overlaypaths.ts';
import { answerAbout } from './stoppedstarts.ts';

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
