/** Faults of Redis: it is killed, stops responding for longer than a lock lasts, refuses writes, or fails over to another leader. */
import { sleep } from '@swefarm/shared';
import type { Fault } from './fault.ts';

export const killRedis: Fault = async ({ farm }, { ms }) => {
  await farm.redis.outage(ms);
  return { what: `Redis killed, back after ${ms / 1000} s`, affected: null };
};

export const pauseRedis: Fault = async ({ farm }, { ms }) => {
  const { pid } = await farm.redis.server();
  process.kill(pid, 'SIGSTOP');
  await sleep(ms);
  process.kill(pid, 'SIGCONT');
  return { what: `Redis did not respond for ${ms / 1000} s`, affected: null };
};

/** Kills the gateway while Redis does not respond, and starts it again before Redis responds. */
export const pauseRedisAndKillGateway: Fault = async (context, scheduled) => {
  const { farm } = context;
  const { pid } = await farm.redis.server();
  process.kill(pid, 'SIGSTOP');
  await sleep(scheduled.ms / 3);
  await farm.gateway.replace(scheduled.ms / 3);
  await sleep(scheduled.ms / 3);
  process.kill(pid, 'SIGCONT');
  return {
    what: `Redis did not respond for ${scheduled.ms / 1000} s, and the gateway was killed meanwhile`,
    affected: null,
  };
};

export const refuseWrites: Fault = async ({ farm, progress }, { ms }) => {
  const running = await progress.running(farm.workers.map((slot) => slot.id()));
  await farm.redis.cli('CONFIG', 'SET', 'min-replicas-to-write', '1');
  await sleep(ms);
  await farm.redis.cli('CONFIG', 'SET', 'min-replicas-to-write', '0');
  return {
    what: `Redis refused writes for ${ms / 1000} s during ${running.length} rollouts`,
    affected: null,
  };
};

export const failOverRedis: Fault = async ({ farm }) => {
  await farm.redis.failover?.();
  return { what: 'the leader of Redis ended, and its standby took over', affected: null };
};
