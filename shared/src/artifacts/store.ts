/** Where artifacts are stored: one compressed blob per attempt, written before the commit. Two kinds: Redis, a directory. */

import type { AttemptName } from '../records/ids.ts';

export type ArtifactUsage = { used_bytes: number; budget_bytes: number; artifacts: number };

export type StoredArtifact = { rollout_id: string; attempt: number; claim: string; locator: string };

export interface ArtifactStore {
  readonly kind: 'redis' | 'directory';
  /**
   * Stores the blob and returns its locator for `Result.artifact`. The same attempt again replaces it.
   * Throws SwefarmError `artifact_budget` (over the byte budget), `artifact_disk_full`, `artifact_store`: all retryable.
   */
  put(rolloutId: string, attempt: AttemptName, blob: Uint8Array, signal?: AbortSignal): Promise<string>;
  /** The blob of a locator of either kind. Throws SwefarmError `artifact_missing`, `bad_artifact_locator`. */
  get(locator: string): Promise<Buffer>;
  /** No error when it is already gone. */
  remove(locator: string): Promise<void>;
  removeRun(runId: string): Promise<void>;
  /** What lies here of a run, in parts: it may be much. One may come twice. */
  runParts(runId: string): AsyncGenerator<StoredArtifact[]>;
  /** Removes what outlived its time and tells what is in use; workers stop claiming when it is near the budget. */
  usage(): Promise<ArtifactUsage>;
}
