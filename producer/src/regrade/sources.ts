/** Reads the sources of a regrade: the lines of an output with their artifacts, or the folders of a harness's tree. */
import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { EvaluationFacts } from '@swefarm/grading';
import { type ArtifactContent, UsageError } from '@swefarm/shared';
import { FILES, type OutputLine, readIfThere, readReport, resultRows } from '@swefarm/trajectories';

export type StoredLog = {
  log: string;
  patch: string | null;
  facts: Omit<EvaluationFacts, 'log'>;
};

/** Yields lines in file order. Throws UsageError for a file that is not an output. */
export async function* outputLines(path: string): AsyncGenerator<OutputLine> {
  for await (const row of resultRows(path)) {
    const line = 'value' in row ? (row.value as Partial<OutputLine>) : null;
    if (typeof line?.rollout_id !== 'string' || typeof line.outcome !== 'string') {
      throw new UsageError(
        `${path}: ${row.where} is no line of an output; name an --output of rollout or eval`,
      );
    }
    yield line as OutputLine;
  }
}

/** Returns the log of an artifact; null without an evaluation or a stored log. */
export function logOfArtifact(content: ArtifactContent): StoredLog | null {
  const { report, test_log: log, patch } = content;
  if (!report || log === null || (report.evaluation === 'not_run' && report.patch_state !== 'not_applied'))
    return null;
  return {
    log,
    patch,
    facts: {
      patch_state: report.patch_state,
      applied_with: report.applied_with,
      ...(report.patch_state === 'not_applied' && report.evaluation !== 'not_run'
        ? { ran_unapplied: true }
        : {}),
      timed_out: report.evaluation === 'timed_out',
      sandbox_killed: report.evaluation === 'sandbox_killed',
      image_digest: report.image_digest,
      // Artifacts do not have these fields, which do not affect the verdict.
      timeout_seconds: 0,
      exit_code: null,
    },
  };
}

export type TreeFolder = {
  folder: string;
  instance_id: string;
  model: string;
  /** Verdict in report.json; null: the file is missing or unreadable. */
  resolved: boolean | null;
  stored: StoredLog | null;
};

/** Maximum number of levels from the given folder down to an instance: run, model, instance. */
const DEPTH = 3;

/** Yields the instances below the folder of a run, a model or an instance. Throws UsageError when there are none. */
export async function* treeFolders(root: string): AsyncGenerator<TreeFolder> {
  let found = 0;
  for await (const folder of instanceFolders(root, DEPTH)) {
    found += 1;
    yield await readFolder(folder);
  }
  if (found === 0) {
    throw new UsageError(`${root}: has no ${FILES.testOutput} of a harness; name logs/run_evaluation/RUN`);
  }
}

async function* instanceFolders(folder: string, depth: number): AsyncGenerator<string> {
  const entries = await readdir(folder, { withFileTypes: true });
  const names = new Set<string>(entries.filter((entry) => entry.isFile()).map((entry) => entry.name));
  if ([FILES.testOutput, FILES.patch, FILES.log].some((name) => names.has(name))) {
    yield folder;
    return;
  }
  if (depth === 0) return;
  for (const entry of entries.filter((one) => one.isDirectory()).sort((a, b) => (a.name < b.name ? -1 : 1))) {
    yield* instanceFolders(join(folder, entry.name), depth - 1);
  }
}

const TIMED_OUT = /\n\nTimeout error: [\d.]+ seconds exceeded\.$/;

async function readFolder(folder: string): Promise<TreeFolder> {
  const instance_id = basename(folder);
  const report = await readReport(folder, instance_id);
  const resolved = report.state === 'report' ? report.report.resolved : null;
  const found = { folder, instance_id, model: basename(dirname(folder)), resolved };
  const patch = await readIfThere(join(folder, FILES.patch));
  const output = await readIfThere(join(folder, FILES.testOutput));
  const log = await readIfThere(join(folder, FILES.log));
  const facts = {
    applied_with: null,
    timeout_seconds: 0,
    exit_code: null,
    sandbox_killed: false,
    image_digest: null,
  };
  if (output === null) {
    if (!log?.includes('>>>>> Patch Apply Failed')) return { ...found, stored: null };
    return {
      ...found,
      stored: { log, patch, facts: { ...facts, patch_state: 'not_applied', timed_out: false } },
    };
  }
  const patch_state = patch !== null && patch.trim() === '' ? 'empty' : 'applied';
  return {
    ...found,
    stored: { log: output, patch, facts: { ...facts, patch_state, timed_out: TIMED_OUT.test(output) } },
  };
}

export async function isFolder(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    throw new UsageError(`${path}: ${missing ? 'no such file' : (error as Error).message}`, { cause: error });
  }
}
