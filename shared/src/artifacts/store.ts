/** The interface of artifact stores. Each attempt writes one compressed blob before its commit. */
import type { AttemptName } from '../records/ids.ts';

export type ArtifactLimits = { budgetBytes: number; ttlSeconds: number };
export type ArtifactUsage = { used_bytes: number; budget_bytes: number; artifacts: number };

export type StoredArtifact = { rollout_id: string; attempt: number; claim: string; locator: string };

export interface ArtifactStore {
  readonly kind: 'redis' | 'directory';
  /**
   * Stores or replaces the blob of an attempt and returns its locator.
   *
   * @throws SwefarmError `artifact_budget`, `artifact_disk_full`, `artifact_store`, all retryable
   */
  put(rolloutId: string, attempt: AttemptName, blob: Uint8Array, signal?: AbortSignal): Promise<string>;
  /**
   * Appends to the blob of an attempt, which has `offset` bytes; 0 replaces the blob. Returns false if the blob has another length: the
   * store lost a part of it. Throws the errors of `put`.
   */
  append(
    rolloutId: string,
    attempt: AttemptName,
    bytes: Uint8Array,
    offset: number,
    signal?: AbortSignal,
  ): Promise<boolean>;
  /** Returns the locator of the attempt's blob, whether the blob exists or not. */
  locate(rolloutId: string, attempt: AttemptName): string;
  /** Returns the blob. Throws SwefarmError `artifact_missing`, `artifact_store` or `bad_artifact_locator`. */
  get(locator: string): Promise<Buffer>;
  /** Removes an artifact; a missing artifact is not an error. */
  remove(locator: string): Promise<void>;
  removeRun(runId: string): Promise<void>;
  /** Yields the artifacts of a run in batches; an artifact may occur twice. */
  runParts(runId: string): AsyncGenerator<StoredArtifact[]>;
  /** Removes expired artifacts and returns the usage. Workers stop claiming when the usage is near the budget. */
  usage(): Promise<ArtifactUsage>;
}
