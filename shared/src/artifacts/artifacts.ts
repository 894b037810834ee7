/** The store of artifacts. The configuration selects the store for new artifacts; a locator names the store of an existing one. */
import type { CommonConfig } from '../config/keys.ts';
import { SwefarmError } from '../failures/errors.ts';
import { type ArtifactContent, decodeArtifact } from './codec.ts';
import { directoryArtifacts, readFileBytes } from './directory.ts';
import type { ArtifactStore } from './store.ts';

export interface Artifacts extends ArtifactStore {
  /**
   * Returns the content of an artifact; null for a null locator. {@link isArtifactGone} detects permanent errors.
   * @throws SwefarmError the errors of `get`, `bad_artifact` or `artifact_version`
   */
  read(locator: string | null): Promise<ArtifactContent | null>;
}

/** Reads an artifact file without a connection to Redis. Throws the errors of {@link Artifacts.read}. */
export const readArtifactFile = async (locator: string): Promise<ArtifactContent> =>
  await decodeArtifact(await readFileBytes(locator));

export const isArtifactFile = (locator: string): boolean => locator.startsWith('file:');

const GONE = new Set(['artifact_missing', 'bad_artifact_locator', 'bad_artifact', 'artifact_version']);

/**
 * Returns whether the error is permanent: the artifact is missing (removed or expired) or damaged, has another format version, or has an
 * invalid locator. An artifact may expire before its result.
 */
export const isArtifactGone = (error: unknown): boolean =>
  error instanceof SwefarmError && GONE.has(error.code);

export const artifactLimits = (config: CommonConfig) => ({
  budgetBytes: config.artifact_budget_bytes,
  ttlSeconds: config.artifact_ttl_seconds,
});

/** Creates a store that writes to Redis or to a directory, as configured, and reads from both. */
export function createArtifacts(config: CommonConfig, inRedis: ArtifactStore): Artifacts {
  const store = config.artifacts === 'redis:' ? inRedis : withDirectory(config, inRedis);
  const get = (locator: string) => (isArtifactFile(locator) ? readFileBytes(locator) : inRedis.get(locator));
  return {
    ...store,
    get,
    read: async (locator) => (locator === null ? null : await decodeArtifact(await get(locator))),
  };
}

function withDirectory(config: CommonConfig, inRedis: ArtifactStore): ArtifactStore {
  const inDirectory = directoryArtifacts(config.artifacts.slice('dir:'.length), artifactLimits(config));
  return {
    ...inDirectory,
    remove: (locator) => (isArtifactFile(locator) ? inDirectory : inRedis).remove(locator),
    async *runParts(runId) {
      yield* inDirectory.runParts(runId);
      yield* inRedis.runParts(runId);
    },
    async removeRun(runId) {
      await inDirectory.removeRun(runId);
      await inRedis.removeRun(runId);
    },
  };
}
