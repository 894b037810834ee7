/** The store of artifacts: writes where the configuration says, reads by locator. */
import type { CommonConfig } from '../config/keys.ts';
import { SwefarmError } from '../failures/errors.ts';
import { type ArtifactContent, decodeArtifact } from './codec.ts';
import { directoryArtifacts, readFileBytes } from './directory.ts';
import type { ArtifactStore } from './store.ts';

export interface Artifacts extends ArtifactStore {
  /**
   * Returns the content of an artifact; null for a null locator.
   *
   * @throws SwefarmError as `get` does, `bad_artifact`, `artifact_version`; {@link isArtifactGone} recognises permanent errors
   */
  read(locator: string | null): Promise<ArtifactContent | null>;
}

/** Reads an artifact of a directory without a farm. Throws as {@link Artifacts.read} does. */
export const readArtifactFile = async (locator: string): Promise<ArtifactContent> =>
  await decodeArtifact(await readFileBytes(locator));

export const isArtifactFile = (locator: string): boolean => locator.startsWith('file:');

const GONE = new Set(['artifact_missing', 'bad_artifact_locator', 'bad_artifact', 'artifact_version']);

/** Returns whether an artifact is permanently unreadable: expired (before its result does) or invalid. */
export const isArtifactGone = (error: unknown): boolean =>
  error instanceof SwefarmError && GONE.has(error.code);

export const artifactLimits = (config: CommonConfig) => ({
  budgetBytes: config.artifact_budget_bytes,
  ttlSeconds: config.artifact_ttl_seconds,
});

/** Stores in Redis or in a directory; reads, lists and removes in both. */
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
