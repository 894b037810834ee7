/** Stores artifacts in Redis as blobs that expire, within a byte budget. */
import type { ArtifactLimits, ArtifactStore, StoredArtifact } from '../artifacts/store.ts';
import { SwefarmError } from '../failures/errors.ts';
import { type AttemptName, parseRolloutId } from '../records/ids.ts';
import type { Keys } from './keys.ts';
import type { Store } from './part.ts';
import { loadScript } from './script.ts';

const SCAN_COUNT = 1_000;

export function redisArtifacts({ redis, keys }: Store, limits: ArtifactLimits): ArtifactStore {
  const scripts = {
    put: loadScript(redis, 'artifact_sweep', 'artifact_put'),
    append: loadScript(redis, 'artifact_sweep', 'artifact_append'),
    remove: loadScript(redis, 'artifact_sweep', 'artifact_remove'),
    usage: loadScript(redis, 'artifact_sweep', 'artifact_usage'),
  };
  const books = [keys.artifactBytes, keys.artifactExpiry, keys.artifactUsed];
  const keysOf = (name: string): string[] => {
    const { runId } = parseRolloutId(readName(name).rollout_id);
    return [...books, keys.run(runId).artifacts, keys.artifact(name)];
  };
  return {
    kind: 'redis',
    async put(rolloutId, { attempt, claim }, blob, signal) {
      signal?.throwIfAborted();
      const name = nameFor(rolloutId, { attempt, claim });
      const args = [name, bufferOf(blob), limits.ttlSeconds * 1000, limits.budgetBytes];
      const [stored, used] = (await scripts.put(keysOf(name), args)) as [number, number];
      if (stored === 1) return `redis:${name}`;
      throw overBudget(blob.byteLength, used, limits);
    },
    async append(rolloutId, named, bytes, offset, signal) {
      signal?.throwIfAborted();
      const name = nameFor(rolloutId, named);
      const args = [name, bufferOf(bytes), limits.ttlSeconds * 1000, limits.budgetBytes, offset];
      const [stored, used] = (await scripts.append(keysOf(name), args)) as [number, number];
      if (stored === 0) throw overBudget(offset + bytes.byteLength, used, limits);
      return stored === 1;
    },
    locate: (rolloutId, named) => `redis:${nameFor(rolloutId, named)}`,
    async get(locator) {
      const blob = await redis.getBuffer(keys.artifact(nameOf(locator)));
      if (blob === null)
        throw new SwefarmError('artifact_missing', `no artifact at ${locator}: removed or expired`);
      return blob;
    },
    async remove(locator) {
      await scripts.remove(keysOf(nameOf(locator)), [nameOf(locator)]);
    },
    async removeRun(runId) {
      for (const name of await redis.smembers(keys.run(runId).artifacts))
        await scripts.remove(keysOf(name), [name]);
    },
    async *runParts(runId) {
      const parts: AsyncIterable<string[]> = redis.sscanStream(keys.run(runId).artifacts, {
        count: SCAN_COUNT,
      });
      for await (const names of parts)
        yield names.map((name) => ({ ...readName(name), locator: `redis:${name}` }));
    },
    async usage() {
      const [used_bytes, artifacts] = (await scripts.usage(books, [])) as [number, number];
      return { used_bytes, budget_bytes: limits.budgetBytes, artifacts };
    },
  };
}

const nameFor = (rolloutId: string, { attempt, claim }: AttemptName): string =>
  `${rolloutId}/${claim}/${attempt}`;

const bufferOf = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

const overBudget = (bytes: number, used: number, limits: ArtifactLimits): SwefarmError =>
  new SwefarmError(
    'artifact_budget',
    `an artifact of ${bytes} bytes does not fit: ${used} of ${limits.budgetBytes} bytes are used; ` +
      'raise artifact_budget_bytes or remove runs',
    { retryable: true },
  );

/** Returns the key of an artifact; null if the locator is that of a file. Throws SwefarmError `bad_artifact_locator`. */
export const keyOfArtifact = (keys: Keys, locator: string): string | null =>
  locator.startsWith('redis:') ? keys.artifact(nameOf(locator)) : null;

function nameOf(locator: string): string {
  const name = /^redis:(.+\/[a-z][0-9a-z]*\/\d+)$/.exec(locator)?.[1];
  if (name === undefined)
    throw new SwefarmError('bad_artifact_locator', `"${locator}" is not the locator of an artifact in Redis`);
  return name;
}

/** Parses the name of an artifact: `rollout/claim/attempt`. */
function readName(name: string): Omit<StoredArtifact, 'locator'> {
  const [, rollout_id = '', claim = '', attempt] = /^(.+\.\d+)\/([a-z][0-9a-z]*)\/(\d+)$/.exec(name) ?? [];
  return { rollout_id, attempt: Number(attempt), claim };
}
