/**
 * Reads the datasets in a configuration of NeMo Gym (`DatasetConfig` in nemo_gym/config_types.py): entries of a list `datasets` with
 * `jsonl_fpath` and, as source, `huggingface_identifier: {repo_id, artifact_fpath}` or `gitlab_identifier`.
 */
import { readYaml, UsageError } from '@swefarm/shared';

export type GymDataset = {
  name: string;
  /** The path from which Gym reads the rows, relative to the folder in which Gym runs. */
  path: string;
  /** Null if the dataset cannot be fetched; `why` contains the reason. */
  source: { repository: string; file: string } | null;
  why: string;
};

type Tree = Record<string, unknown>;
const asTree = (value: unknown): Tree =>
  value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Tree) : {};

/** Finds the lists `datasets` at any depth of a configuration. Throws UsageError if the file is unreadable or has no datasets. */
export function readGymDatasets(path: string): GymDataset[] {
  const found = [...entriesIn(readYaml(path, `--gym-config ${path}: cannot be read`))].map(gymDataset);
  if (found.length > 0) return found;
  throw new UsageError(
    `--gym-config ${path}: has no datasets with a jsonl_fpath; is it a configuration of NeMo Gym?`,
  );
}

function* entriesIn(value: unknown): Generator<Tree> {
  if (Array.isArray(value)) for (const item of value) yield* entriesIn(item);
  for (const [key, inner] of Object.entries(asTree(value))) {
    if (key !== 'datasets' || !Array.isArray(inner)) yield* entriesIn(inner);
    else yield* inner.map(asTree).filter((entry) => typeof entry.jsonl_fpath === 'string');
  }
}

function gymDataset(entry: Tree): GymDataset {
  const { repo_id, artifact_fpath } = asTree(entry.huggingface_identifier);
  const named = { name: String(entry.name ?? entry.jsonl_fpath), path: String(entry.jsonl_fpath) };
  if (typeof repo_id === 'string' && typeof artifact_fpath === 'string') {
    return { ...named, source: { repository: repo_id, file: artifact_fpath }, why: '' };
  }
  const why =
    typeof repo_id === 'string'
      ? `its huggingface_identifier names no artifact_fpath: fetch ${repo_id} by name and choose a file`
      : entry.gitlab_identifier === undefined || entry.gitlab_identifier === null
        ? 'it names no source: it comes with Gym'
        : `it lies in a GitLab model registry, which only Gym's own ng_download_dataset_from_gitlab reads; put the file at ${named.path}`;
  return { ...named, source: null, why };
}
