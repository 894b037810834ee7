/** Reads what the program of an agent printed and wrote, to store it with the rollout. */
import { isUtf8 } from 'node:buffer';
import type { AgentStart } from '@swefarm/agents';
import type { Container, ExecResult } from '@swefarm/sandbox';
import { type AgentOutput, errorMessage, type Log } from '@swefarm/shared';
import { readFiles } from './files.ts';

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
      const limits = { maxBytes: Math.min(left, Math.floor(max_mib * MIB)), maxFiles: MOST_FILES };
      for (const file of await readFiles(container, path, limits, signal)) {
        left -= file.content.length;
        found.push(outputOf(file.name === '' ? as : `${as}/${file.name}`, file.content, file.bytes));
      }
    } catch (error) {
      signal.throwIfAborted();
      log.warn({ path, err: errorMessage(error) }, 'output of the agent not stored');
    }
  }
  return found;
}

function outputOf(name: string, content: Buffer, bytes: number): AgentOutput {
  // A typed array of its own, because a buffer may be a view into a larger one.
  if (!isUtf8(content)) return { name, content: Int8Array.from(content), bytes };
  return { name, content: content.toString('utf8'), bytes };
}
