/**
 * Splits the tokens of one request by policy version. The weights may change while an answer is in flight, and the worker reads the trainer's
 * record only once a second.
 */
import type { Span } from '@swefarm/shared';
import type { FollowedPolicy } from './watch.ts';

/** Tokens [from, to) of the request, sampled by one version. */
type Piece = { version: string | null; from: number; to: number };

export type TokenSplit = Disposable & {
  /**
   * Returns the spans of the request's tokens. Tokens that arrived between the last read of one version and the first read of the next version
   * have the version null. `last`: the version known at the end.
   */
  spans(tokens: number, last: string | null): Span[];
};

/** @param generated number of tokens that the request has returned so far */
export function openTokenSplit(
  followed: Pick<FollowedPolicy, 'record' | 'onRead'>,
  generated: () => number,
): TokenSplit {
  const first = followed.record();
  const endpoints = JSON.stringify(first?.endpoints);
  const pieces: Piece[] = [{ version: first?.version ?? null, from: 0, to: 0 }];
  let changedAt = first?.changed_at;
  /** Number of tokens at the previous read. They arrived before the worker sent the next read. */
  let arrived = 0;
  const stop = followed.onRead(() => {
    const record = followed.record();
    const now = generated();
    const piece = pieces.at(-1);
    if (record?.state === 'serving' && piece) {
      // The answer may come from an endpoint that the trainer has replaced. The record does not name the weights of that endpoint.
      const version = JSON.stringify(record.endpoints) === endpoints ? record.version : null;
      if (version !== piece.version) pieces.push({ version, from: now, to: now });
      else if (record.changed_at === changedAt) piece.to = Math.max(piece.to, arrived);
      changedAt = record.changed_at;
    }
    arrived = now;
  });
  return {
    spans(tokens, last) {
      const spans: Span[] = [];
      const add = (version: string | null, count: number): void => {
        if (count > 0) spans.push({ version, tokens: count });
      };
      let at = 0;
      for (const [index, { version, from, to }] of pieces.entries()) {
        const isLast = index === pieces.length - 1;
        const end = Math.min(tokens, isLast && version === last ? tokens : to);
        add(null, Math.min(tokens, from) - at);
        add(version, end - Math.min(tokens, from));
        at = Math.max(at, end);
      }
      add(null, tokens - at);
      return spans;
    },
    [Symbol.dispose]: stop,
  };
}
