/** What an export format is: how it opens its output, and how it writes one rollout. Formats are listed in formats/registry.ts. */
import type { ExportedRollout } from './rollout.ts';

export type ExportRequest = {
  /** The file or folder that the user named; `-` for standard output. */
  path: string;
  /** One of the format's forms. */
  form: string;
  /** Most rollouts that any instance has in this export. */
  samples: number;
  /** Changes when other rollouts are chosen: shards of another choice are not continued. */
  fingerprint: string;
};

export interface ExportWriter extends AsyncDisposable {
  /** Ids of the rollouts that an earlier start wrote. */
  readonly written?: ReadonlySet<string>;
  /** Returns null once it is written, or why the format cannot hold this rollout. */
  write(rollout: ExportedRollout): Promise<string | null>;
  /** Puts the output in its place, in one step; without it nothing is left. */
  finish(): Promise<void>;
}

export type ExportFormat = {
  description: string;
  /** `--form`; the first is the default. */
  forms: readonly string[];
  /** `file` formats can also go to standard output. */
  shape: 'file' | 'folder';
  /** The format has one rollout for an instance. */
  oneEach?: true;
  open(request: ExportRequest): Promise<ExportWriter>;
};

export const NO_TRAJECTORY = 'no trajectory was kept';
