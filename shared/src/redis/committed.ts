/** The entry of a committed rollout: `attempt outcome stream-id worker TAB claim`, as commit.lua writes it. */
import { type Outcome, outcomeOf } from '../records/result.ts';

/** `claim`: null for what was committed before entries had it. */
export type CommittedEntry = {
  attempt: number;
  outcome: Outcome;
  stream_id: string;
  worker: string;
  claim: string | null;
};

export function parseCommitted(entry: string): CommittedEntry {
  const [attempt = '', outcome = '', stream_id = '', ...rest] = entry.split(' ');
  const [worker = '', claim = null] = rest.join(' ').split('\t');
  return { attempt: Number(attempt), outcome: outcomeOf(outcome), stream_id, worker, claim };
}

/** Who committed, as it ends the entry. Versions that know no claims read it as the name of a worker that is not theirs. */
export const signature = (worker: string, claim: string | undefined): string =>
  claim === undefined ? worker : `${worker}\t${claim}`;
