/** Reads an engine's list of the changed files of a stopped container. The list can be long, so it is read as a stream. */
import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { errorMessage } from '@swefarm/shared';
import type Docker from 'dockerode';
import { engineFailure, fileFailure, statusCode } from '../engine/errors.ts';
import type { Change, ChangeVisitor, FileKind } from '../filechanges.ts';
import { answerAbout } from './stoppedstarts.ts';

/** The keys come in either order; quotation marks inside a path are always escaped. */
const ENTRY = /\{(?:"Kind":(\d),)?"Path":("(?:[^"\\]|\\.)*")(?:,"Kind":(\d))?\}/g;
const REMOVED = '2';
/** Bits of Go's file modes: a folder, a link, and all bits of a file's type, which are 0 for a regular file. */
const GO_MODE_FOLDER = 0x80000000n;
const GO_MODE_LINK = 0x08000000n;
export const GO_MODE_TYPE = 0x8f280000n;

/** Passes each change to `look`. Throws RolloutFailure engine_unreachable if the list is incomplete. */
export async function listChanges(
  docker: Docker,
  id: string,
  look: ChangeVisitor,
  signal: AbortSignal,
): Promise<void> {
  try {
    const { modem } = docker;
    const stream = (await promisify(modem.dial.bind(modem))({
      path: `/containers/${id}/changes`,
      method: 'GET',
      isStream: true,
      abortSignal: signal,
      statusCodes: { 200: true, 404: 'no such container', 500: 'server error' },
    })) as Readable;
    stream.setEncoding('utf8');
    const reader = changesReader((change) => look.visit(change));
    for await (const text of stream) {
      signal.throwIfAborted();
      reader.push(text as string);
    }
    reader.end();
  } catch (error) {
    signal.throwIfAborted();
    throw engineFailure(error, 'engine_unreachable', 'listing the changes of a container');
  }
}

/** Parses a JSON list of changes in pieces; `end` throws when the list is incomplete. */
export function changesReader(onChange: (change: Change) => void): { push(text: string): void; end(): void } {
  let rest = '';
  return {
    push(text) {
      rest += text;
      let read = 0;
      for (const match of rest.matchAll(ENTRY)) {
        const [whole, before, path = '""', after] = match;
        read = match.index + whole.length;
        onChange({ path: JSON.parse(path) as string, removed: (before ?? after) === REMOVED });
      }
      rest = rest.slice(read);
    },
    end() {
      const last = rest.trim().replace(/^,/, '');
      // The remaining text is the end of a list, an empty list, or `null`.
      if (!['[]', ']', 'null'].includes(last)) throw new Error('the list of changes is incomplete');
    },
  };
}

type PathStat = {
  kind: FileKind;
  bytes: number;
  /** Final target of a chain of links; null: the path is no link. */
  target: string | null;
};

/** Returns the engine's report about a path, without following a link. Throws the engine's own error. */
export async function pathStat(
  container: Docker.Container,
  path: string,
  answerMs?: number,
): Promise<PathStat> {
  let answer: { headers?: Record<string, string> };
  try {
    answer = await answerAbout(container, container.infoArchive({ path }), answerMs);
  } catch (error) {
    if (statusCode(error) === 404) return { kind: 'missing', bytes: 0, target: null };
    throw error;
  }
  const header = answer.headers?.['x-docker-container-path-stat'] ?? '';
  const { mode, size, linkTarget } = JSON.parse(Buffer.from(header, 'base64').toString()) as {
    mode: number;
    size: number;
    linkTarget: string;
  };
  const bits = BigInt(mode);
  const regular = (bits & GO_MODE_TYPE) === 0n ? 'file' : 'other';
  return {
    kind: (bits & GO_MODE_FOLDER) !== 0n ? 'folder' : regular,
    bytes: size,
    target: (bits & GO_MODE_LINK) !== 0n ? linkTarget : null,
  };
}

/** Returns the kind of a path. @throws RolloutFailure engine_unreachable */
export async function pathKind(container: Docker.Container, path: string): Promise<FileKind> {
  try {
    return (await pathStat(container, path)).kind;
  } catch (error) {
    throw fileFailure(
      error,
      `asking for ${path} in a container: ${errorMessage(error)}`,
      'engine_unreachable',
    );
  }
}
