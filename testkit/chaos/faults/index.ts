/** All faults from outside of sandboxes. The script has the faults that the model's commands cause. */
import type { FaultKind } from '../schedule.ts';
import { killGateway, killProducer } from './control.ts';
import { cutEndpoint, failEndpoint, hangEndpoint, refit } from './endpoint.ts';
import type { Fault } from './fault.ts';
import { fillDisk, restartEngine } from './node.ts';
import { failOverRedis, killRedis, pauseRedis, pauseRedisAndKillGateway, refuseWrites } from './redis.ts';
import { killWorker, shiftWorkerClock, stopWorker } from './worker.ts';

export const FAULTS: Readonly<Record<FaultKind, Fault>> = {
  worker_kill: killWorker,
  worker_stop: stopWorker,
  worker_clock: shiftWorkerClock,
  redis_kill: killRedis,
  redis_pause: pauseRedis,
  redis_refuse: refuseWrites,
  redis_failover: failOverRedis,
  redis_and_gateway: pauseRedisAndKillGateway,
  engine_restart: restartEngine,
  endpoint_errors: failEndpoint,
  endpoint_hang: hangEndpoint,
  endpoint_cut: cutEndpoint,
  refit,
  disk_full: fillDisk,
  producer_kill: killProducer,
  gateway_kill: killGateway,
};
