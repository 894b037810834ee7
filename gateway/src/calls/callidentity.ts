/** Identity of calls: when two requests to `/run` are one call, and which rows are rollouts of one prompt. */
import type { ProducerConfig } from '@swefarm/shared';
import type { GymRow } from '@swefarm/trajectories';
import { episodeName, type GymRunRequest } from '@swefarm/trajectories';
import type { FastifyRequest } from 'fastify';
import type { Caller } from '../access/callers.ts';
import { digest, fingerprint } from '../access/digest.ts';
import { Refusal } from '../access/refusal.ts';
import { type FailureMode, isTraining } from './failuremode.ts';

/** `named`: the caller gave an id. `graceMs`: how long the rollout continues after the connection or the gateway ended. */
export type CallIdentity = { fingerprint: string; named: boolean; graceMs: number };

/** @param runName hash of the caller's settings */
export function identifyCall(
  request: Pick<FastifyRequest, 'headers'>,
  body: GymRunRequest,
  caller: Caller,
  mode: FailureMode,
  runName: string,
  config: ProducerConfig,
): CallIdentity {
  const name = callName(request, body);
  const row = digest(body.row);
  // The state of the policy is no part of the identity, because it may change before the caller sends the row again.
  const parts = name === null ? [caller.name, runName, row] : [caller.name, name, row];
  const seconds = isTraining(mode) ? config.gateway_grace_seconds : config.gateway_collector_grace_seconds;
  return { named: name !== null, fingerprint: fingerprint(parts), graceMs: seconds * 1000 };
}

/** Returns the id that the caller gave in the header, the episode or the row; null: the caller gave no id. */
function callName(request: Pick<FastifyRequest, 'headers'>, { row, episode }: GymRunRequest): string | null {
  const header = request.headers['idempotency-key'];
  if (typeof header === 'string' && header !== '') {
    if (header.length <= 300) return `key ${header}`;
    throw new Refusal(400, 'bad_request', 'idempotency-key: expected at most 300 characters', {
      field: 'idempotency-key',
    });
  }
  if (episode) return `episode ${episodeName(episode)}`;
  return row._ng_rollout_id ? `id ${row._ng_rollout_id}` : null;
}

/** Returns a hash of the row. The rollouts of one prompt have the same hash, because it omits their indexes and policies. */
export const promptOf = (row: GymRow): string =>
  digest({
    ...{ ...row, _rowidx: null, _ng_rollout_index: null, _ng_attempt_index: null, _ng_rollout_id: null },
    policy: null,
  });
