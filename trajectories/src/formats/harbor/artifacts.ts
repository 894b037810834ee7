/** Writes the folder `artifacts/` of a trial: the artifacts of a Harbor task, or the patch of another instance. */
import { type CollectedArtifact, jsonText } from '@swefarm/shared';
import type { FolderTree } from '../../export/foldertree.ts';
import type { ExportedRollout } from '../../export/rollout.ts';

/** Harbor's folder of artifacts. Tasks of `swefarm dataset to-harbor` read the patch there, so Harbor can grade a trial again. */
const CONVENTION = 'logs/artifacts';

/** Writes the manifest and all artifacts below `folder` of the tree. Throws the errors of the tree. */
export async function writeArtifacts(
  tree: FolderTree,
  folder: string,
  { content, patch }: Pick<ExportedRollout, 'content' | 'patch'>,
): Promise<void> {
  const collected = content?.collected ?? patchOnly(patch);
  await tree.write(`${folder}/manifest.json`, jsonText(collected.map(manifestEntry), 2));
  for (const { destination, files, type, status } of collected) {
    const at = (path: string): string => [folder, destination, ...(path === '' ? [] : [path])].join('/');
    if (type === 'directory' && status === 'ok') await tree.makeFolder(at(''));
    for (const { path, content: bytes, mode, link } of files) {
      if (bytes) await tree.write(at(path), Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length), mode);
      else if (link === undefined) await tree.makeFolder(at(path));
    }
    // No file is written through a link, because the links come last.
    for (const { path, link } of files) if (link !== undefined) await tree.link(at(path), link);
  }
}

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
