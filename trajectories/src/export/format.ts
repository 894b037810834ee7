/** The interface of an export format. formats/registry.ts lists the formats. */
import type { ExportedRollout } from './rollout.ts';

export type ExportRequest = {
  /** The file or folder that the user named; `-` for standard output. */
  path: string;
  /** One of the format's forms. */
  form: string;
  /** Most rollouts that any instance has in this export. */
  samples: number;
  /** Hash of the choice: shards of another choice are not continued. */
  fingerprint: string;
};

export interface ExportWriter extends AsyncDisposable {
  /** Ids of the rollouts that an earlier start wrote. */
  readonly written?: ReadonlySet<string>;
  /** Returns null, or why the format cannot represent this rollout. */
  write(rollout: ExportedRollout): Promise<string | null>;
  /** Renames the output to its final path in one step. Without this call, complete shards remain for the next start. */
  finish(): Promise<void>;
}

export type ExportFormat = {
  description: string;
  /** `--form`; the first is the default. */
  forms: readonly string[];
  /** `file` formats can also go to standard output. */
  shape: 'file' | 'folder';
  /** The format allows one rollout for an instance. */
  oneEach?: true;
  open(request: ExportRequest): Promise<ExportWriter>;
};

export const NO_TRAJECTORY = 'no trajectory is stored';
