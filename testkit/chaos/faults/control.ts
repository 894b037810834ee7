/** Faults of the processes that only submit and read: kills the producer's collector, or the gateway with its open calls. */
import type { Fault } from './fault.ts';

export const killProducer: Fault = async ({ collector }) => {
  await collector.replace();
  return { what: 'the collector was killed and resumed', affected: null };
};

export const killGateway: Fault = async ({ farm }, { ms }) => {
  await farm.gateway.replace(ms);
  return { what: `the gateway was killed with its open calls, back after ${ms / 1000} s`, affected: null };
};
