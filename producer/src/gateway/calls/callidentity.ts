/** What makes two requests to `/run` the same, and which rows are rollouts of one prompt. */
import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { episodeName, type GymRunRequest } from '../../formats/gym/request.ts';
import type { GymRow } from '../../formats/gym/row.ts';
import { digest } from '../access/digest.ts';
import { Refusal } from '../access/refusal.ts';

/** The id that a caller gave to its call, from a header, the episode or the row; null: it gave none. */
export function nameOf(
  request: Pick<FastifyRequest, 'headers'>,
  { row, episode }: GymRunRequest,
): string | null {
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

export const fingerprint = (parts: readonly unknown[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('base64url');

/** The row without what tells the rollouts of its prompt apart. */
export const promptOf = (row: GymRow): string =>
  digest({
    ...row,
    _rowidx: null,
    _ng_rollout_index: null,
    _ng_attempt_index: null,
    _ng_rollout_id: null,
  });
