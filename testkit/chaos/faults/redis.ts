/** Redis dies and comes back from its append-only file, or stands still for longer than a lock lives. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Fault } from './fault.ts';

export const killRedis: Fault = async ({ farm }, { ms }) => {
  await farm.redis.kill();
  await sleep(ms);
  await farm.redis.restart();
  return { what: `Redis killed, back after ${ms / 1000} s`, held: null };
};

export const pauseRedis: Fault = async ({ farm }, { ms }) => {
  const pid = farm.redis.pid();
  process.kill(pid, 'SIGSTOP');
  await sleep(ms);
  process.kill(pid, 'SIGCONT');
  return { what: `Redis stood still for ${ms / 1000} s`, held: null };
};
