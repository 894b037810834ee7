/** The interface of an export format. formats/registry.ts lists the formats. */
import type { Trajectory } from '@swefarm/shared';
import type { LineChoice } from './lines.ts';
import type { ExportedRollout } from './rollout.ts';

export type ExportRequest = {
  /** Output file or folder; `-` for standard output. */
  path: string;
  form: string;
  /** Maximum number of rollouts of one instance in this export. */
  samples: number;
  /** Lines of a rollout that are written; a choice of the format's `lines`. */
  lines: LineChoice;
  /** Whether the tokens of rollouts that a token limit cut are not trained on; only for formats with `masks`. */
  maskOverlong?: boolean;
  /** Hash of the selection of rollouts. An export does not continue shards of another selection. */
  fingerprint: string;
};

export interface ExportWriter extends AsyncDisposable {
  /** Ids of the rollouts that an earlier, interrupted export wrote. */
  readonly written?: ReadonlySet<string>;
  /** Writes a rollout. Throws NotExportable if the format cannot represent the rollout. */
  write(rollout: ExportedRollout): Promise<void>;
  /** Renames the output to its final path in one step. Without this call, complete shards remain for the next start. */
  finish(): Promise<void>;
}

export type ExportFormat = {
  description: string;
  /** Values of `--form`; the first is the default. */
  forms: readonly string[];
  /** Values of `--lines`; the first is the default. */
  lines: readonly LineChoice[];
  /** Only `file` formats can be written to standard output. */
  shape: 'file' | 'folder';
  /** Present if the format says which answers are not trained on. */
  masks?: true;
  /** Present if the format allows only one rollout of each instance. */
  oneEach?: true;
  open(request: ExportRequest): Promise<ExportWriter>;
};

/** Thrown for a rollout that a format cannot represent. The message is the reason, by which such rollouts are counted. */
export class NotExportable extends Error {
  override readonly name = 'NotExportable';
}

/** Returns the trajectory of a rollout. Throws NotExportable if there is none, or if its `part` is empty. */
export function trajectoryOf(
  { content }: ExportedRollout,
  part: 'messages' | 'turns' | null = 'messages',
): Trajectory {
  const trajectory = content?.trajectory;
  if (trajectory && (part === null || trajectory[part].length > 0)) return trajectory;
  throw new NotExportable('no trajectory is stored');
}
