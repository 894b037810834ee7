/** Faults of a node: the scratch disk of one worker is full for some time, or the container engine is restarted. */
import { sleep } from '@swefarm/shared';
import { SMALL_WORKER } from '../farm.ts';
import type { Fault } from './fault.ts';

export const fillDisk: Fault = async ({ farm, progress }, { ms }) => {
  const running = await progress.running([farm.workers[SMALL_WORKER]?.id() ?? '']);
  await farm.small.fill();
  await sleep(ms);
  await farm.small.free();
  return { what: `the disk under ${running.length} sandboxes was full for ${ms / 1000} s`, affected: null };
};

export const restartEngine: Fault = async ({ farm }, { ms }) => {
  const containers = (await farm.engine.containers()).length;
  await farm.engine.restart(ms);
  return { what: `dockerd restarted with ${containers} containers, down for ${ms / 1000} s`, affected: null };
};
