/** The container engine ends with all its containers, and is started again. */
import type { Fault } from './fault.ts';

export const restartEngine: Fault = async ({ farm }, { ms }) => {
  const containers = (await farm.engine.containers()).length;
  await farm.engine.restart(ms);
  return { what: `dockerd restarted with ${containers} containers, down for ${ms / 1000} s`, affected: null };
};
