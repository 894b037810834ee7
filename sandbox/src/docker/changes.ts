/** Reads an engine's list of the changed files of a stopped container as a stream, because the list can be long. */
import type { Readable } from 'node:stream';
import { errorMessage } from '@swefarm/shared';
import type Docker from 'dockerode';
import { engineFailure, statusCode } from '../engine/errors.ts';
import type { Change, ChangeVisitor, FileKind } from '../filechanges.ts';
import { answerAbout } from './stoppedstarts.ts';

/** Keys come in either order; a quotation mark inside a path is always escaped. */
const ENTRY = /\{(?:"Kind":(\d),)?"Path":("(?:[^"\\]|\\.)*")(?:,"Kind":(\d))?\}/g;
const REMOVED = '2';
/** Bits of Go's file modes: a folder, a link, and all the bits that mark anything but a regular file. */
const GO_MODE_FOLDER = 0x80000000n;
const GO_MODE_LINK = 0x08000000n;
export const GO_MODE_TYPE = 0x8f280000n;

/** Throws RolloutFailure engine_unreachable when the list is cut. */
export async function listChanges(
  docker: Docker,
  id: string,
  look: ChangeVisitor,
  signal: AbortSignal,
): Promise<void> {
  try {
    const stream = await new Promise<Readable>((resolve, reject) => {
      const request = {
        path: `/containers/${id}/changes`,
        method: 'GET',
        isStream: true,
        abortSignal: signal,
        statusCodes: { 200: true, 404: 'no such container', 500: 'server error' },
      };
      docker.modem.dial(request, (error: unknown, body: unknown) =>
        error ? reject(error) : resolve(body as Readable),
      );
    });
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

/** Reads a JSON list of changes in pieces; `end` throws when the list was cut. */
export function changesReader(see: (change: Change) => void): { push(text: string): void; end(): void } {
  let rest = '';
  return {
    push(text) {
      rest += text;
      let read = 0;
      for (const match of rest.matchAll(ENTRY)) {
        const [whole, before, path = '""', after] = match;
        read = match.index + whole.length;
        see({ path: JSON.parse(path) as string, removed: (before ?? after) === REMOVED });
      }
      rest = rest.slice(read);
    },
    end() {
      const last = rest.trim().replace(/^,/, '');
      // The rest of `[…]`, of an empty list, or of no list.
      if (!['[]', ']', 'null'].includes(last)) throw new Error('the list of changes is cut');
    },
  };
}

type PathStat = {
  kind: FileKind;
  bytes: number;
  /** Where a link ends, after all links on the way; null: the path is no link. */
  target: string | null;
};

/** What an engine reports about one path in a container, without following a link. Throws the engine's own error. */
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

/** @throws RolloutFailure engine_unreachable */
export async function pathKind(container: Docker.Container, path: string): Promise<FileKind> {
  try {
    return (await pathStat(container, path)).kind;
  } catch (error) {
    throw engineFailure(
      error,
      'engine_unreachable',
      `asking for ${path} in a container: ${errorMessage(error)}`,
    );
  }
}
