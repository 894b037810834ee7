/** Reads what the program of an agent printed and wrote, to store it with the rollout. */
import { isUtf8 } from 'node:buffer';
import type { AgentStart } from '@swefarm/agents';
import { type Container, type ExecResult, type FolderFiles, readFolder } from '@swefarm/sandbox';
import { type AgentOutput, errorMessage, type Log, SwefarmError } from '@swefarm/shared';

const MIB = 1024 ** 2;
/** Most bytes of all outputs of a rollout. */
const MOST_BYTES = 64 * MIB;
const MOST_FILES = 500;

/** Returns the outputs of the card, and the program's own output as `output`. A file that cannot be read is left out and logged. */
export async function readOutputs(
  container: Container,
  outputs: AgentStart['outputs'],
  printed: ExecResult | null,
  { log, signal }: { log: Pick<Log, 'warn'>; signal: AbortSignal },
): Promise<AgentOutput[]> {
  const found: AgentOutput[] = printed ? [outputOf('output', printed.output, printed.outputBytes)] : [];
  let left = MOST_BYTES;
  for (const { path, as, max_mib } of outputs) {
    try {
      const maxBytes = Math.min(left, Math.floor(max_mib * MIB));
      const { files, isComplete } = await readFiles(container, path, maxBytes, signal);
      for (const [name, content] of files) {
        left -= content.length;
        found.push(outputOf(name === '' ? as : `${as}/${name}`, content, content.length));
      }
      if (!isComplete)
        log.warn({ path, most_bytes: maxBytes }, 'outputs of the agent are too large: some are left out');
    } catch (error) {
      signal.throwIfAborted();
      log.warn({ path, err: errorMessage(error) }, 'output of the agent not stored');
    }
  }
  return found;
}

/** Returns a regular file under the name `''`, or the files of a folder; none if nothing has this path. */
async function readFiles(
  container: Container,
  path: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<FolderFiles> {
  try {
    const file = await container.getFile(path, maxBytes, signal);
    if (file) return { files: new Map([['', file]]), isComplete: true };
  } catch (error) {
    if (error instanceof SwefarmError && error.code === 'file_too_large')
      return { files: new Map(), isComplete: false };
    throw error;
  }
  const folder = await readFolder(container, path, { maxBytes, maxFiles: MOST_FILES }, signal);
  return folder ?? { files: new Map(), isComplete: true };
}

function outputOf(name: string, content: Buffer, bytes: number): AgentOutput {
  // A typed array of its own, because a buffer may be a view into a larger one.
  if (!isUtf8(content)) return { name, content: Int8Array.from(content), bytes };
  return { name, content: content.toString('utf8'), bytes };
}
