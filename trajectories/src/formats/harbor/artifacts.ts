/** Writes the folder `artifacts/` of a trial: the artifacts of a Harbor task, or the patch of another instance. */
import { type CollectedArtifact, jsonText, UsageError } from '@swefarm/shared';
import type { FolderTree } from '../../export/foldertree.ts';
import type { ExportedRollout } from '../../export/rollout.ts';

/** Harbor's folder of artifacts. Tasks of `swefarm dataset to-harbor` read the patch there, so Harbor can grade a trial again. */
const CONVENTION = 'logs/artifacts';

/** Permission bits of every file, so that programs can read the export. */
const OWNER = 0o600;
/** Errors of names and links that the agent chose, and that the file system of the output refuses. */
const REFUSED: ReadonlySet<unknown> = new Set([
  'ENAMETOOLONG',
  'ENOTDIR',
  'EISDIR',
  'EEXIST',
  'EINVAL',
  'EILSEQ',
]);

/**
 * Writes all artifacts below `folder` of the tree, and the manifest. An artifact with a name that the output cannot have gets the status
 * `failed`, and may be incomplete. Throws other errors of the tree.
 */
export async function writeArtifacts(
  tree: FolderTree,
  folder: string,
  { content, patch }: Pick<ExportedRollout, 'content' | 'patch'>,
): Promise<void> {
  const collected = content?.collected ?? patchOnly(patch);
  const written: CollectedArtifact[] = [];
  for (const artifact of collected)
    written.push({ ...artifact, status: await writeOne(tree, folder, artifact) });
  await tree.write(`${folder}/manifest.json`, jsonText(written.map(manifestEntry), 2));
}

async function writeOne(
  tree: FolderTree,
  folder: string,
  { destination, files, type, status }: CollectedArtifact,
): Promise<CollectedArtifact['status']> {
  const at = (path: string): string => [folder, destination, ...(path === '' ? [] : [path])].join('/');
  try {
    if (type === 'directory' && status === 'ok') await tree.makeFolder(at(''));
    for (const { path, content: bytes, mode, link } of files) {
      const content = bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
      if (content) await tree.write(at(path), content, mode === undefined ? mode : mode | OWNER);
      else if (link === undefined) await tree.makeFolder(at(path));
    }
    // No file is written through a link, because the links come last.
    for (const { path, link } of files) if (link !== undefined) await tree.link(at(path), link);
    return status;
  } catch (error) {
    if (isRefused(error)) return 'failed';
    throw error;
  }
}

const isRefused = (error: unknown): boolean =>
  error instanceof UsageError ||
  (error instanceof Error && REFUSED.has((error.cause as NodeJS.ErrnoException)?.code));

const manifestEntry = ({ source, destination, type, status, exclude }: CollectedArtifact) => ({
  ...{ source, destination: `artifacts/${destination}`, type, status, service: null },
  exclude: type === 'directory' ? exclude : [],
});

function patchOnly(patch: string | null): CollectedArtifact[] {
  if (patch === null) return [];
  const files = [{ path: 'patch.diff', content: Int8Array.from(Buffer.from(patch)) }];
  return [
    {
      ...{ source: `/${CONVENTION}`, destination: CONVENTION, exclude: [], type: 'directory', status: 'ok' },
      files,
    },
  ];
}
