/** Reads from the end of an agent's program how the agent ended, by the rules of its card. */
import type { Container } from '@swefarm/sandbox';
import { type AgentCard, type ExitStatus, SwefarmError, tryParseJson } from '@swefarm/shared';

const MOST_BYTES = 4 * 1024 ** 2;

/** Returns the status of the first rule that fits; `agent_error` if none does. Throws RolloutFailure of the sandbox. */
export async function statusOf(
  container: Container,
  ends: AgentCard['ends'],
  exitCode: number | null,
  signal: AbortSignal,
): Promise<ExitStatus> {
  for (const { exit, field, status } of ends) {
    if (exit !== 'any' && exit !== exitCode) continue;
    if (!field) return status;
    const found = fieldOf(await readJson(container, field.file, signal), field.path);
    if (found !== undefined && field.is.includes(String(found))) return status;
  }
  return 'agent_error';
}

async function readJson(container: Container, file: string, signal: AbortSignal): Promise<unknown> {
  try {
    const bytes = await container.getFile(file, MOST_BYTES, signal);
    return bytes && tryParseJson(bytes.toString('utf8'));
  } catch (error) {
    if (error instanceof SwefarmError && error.code === 'file_too_large') return null;
    throw error;
  }
}

/** Returns the value at a path such as `info.status`; undefined if there is none. */
function fieldOf(value: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((at, key) => {
    const isObject = typeof at === 'object' && at !== null;
    return isObject && Object.hasOwn(at, key) ? (at as Record<string, unknown>)[key] : undefined;
  }, value);
}
