/** Tests that a full store costs the artifacts of a Harbor task, but never its result or the work that another attempt grades. */
import { type CollectedArtifact, decodeArtifact, RolloutFailure, SwefarmError } from '@swefarm/shared';
import { expect, test } from 'vitest';
import { storeArtifact } from './artifact.ts';
import type { AttemptContext } from './context.ts';

const log = { warn: () => undefined, info: () => undefined };
const collected: CollectedArtifact[] = [
  {
    ...{ source: '/a', destination: 'a', exclude: [], type: 'file', status: 'ok' },
    files: [{ path: '', content: new Int8Array(10_000).map((_, at) => (at * at * 7919) >> 3) }],
  },
];

function contextOf(work: readonly CollectedArtifact[] | null, mostBytes: number, code = 'artifact_budget') {
  const stored: Uint8Array[] = [];
  const put = async (_id: string, _attempt: object, blob: Uint8Array) => {
    if (blob.length > mostBytes) throw new SwefarmError(code, 'full');
    return `file:${stored.push(blob)}`;
  };
  const context = {
    ...{ job: { rollout_id: 'r', instance_id: 'i' }, attempt: 1, claim: 'c', log },
    trace: { trajectory: null, patch: 'x', report: null, testLog: null, evalScript: null, collected: work },
    services: { farm: { artifacts: { put } } },
  };
  return { stored, context: context as unknown as AttemptContext };
}

test('a result is stored without its artifacts if the store has no room', async () => {
  const { stored, context } = contextOf(collected, 2_000);
  expect(await storeArtifact(context, {}, { log })).toBe('file:1');
  expect(await decodeArtifact(stored[0] ?? Buffer.alloc(0))).toMatchObject({
    patch: 'x',
    collected: [{ source: '/a', status: 'failed', why: expect.stringContaining('no room'), files: [] }],
  });
});

test.each<[string, readonly CollectedArtifact[] | null, object, string]>([
  ['resumable work', collected, { kept: {} }, 'artifact_budget'],
  ['a result without artifacts', null, {}, 'artifact_budget'],
  ['another error of the store', collected, {}, 'artifact_store'],
])('%s is not stored in part', async (_, work, more, code) => {
  const { stored, context } = contextOf(work, 0, code);
  await expect(storeArtifact(context, more, { log })).rejects.toThrow(RolloutFailure);
  expect(stored).toEqual([]);
});
