/** Files and patch of a session's sandbox, read and written from outside of it. */
import { isCausedByCode, SandboxKilledError, takePatch } from '@swefarm/sandbox';
import { errorMessage, type InputError, SwefarmError } from '@swefarm/shared';
import type { SandboxFiles } from '../agent/inputs.ts';
import type { AgentSandbox } from './containers.ts';

/**
 * The runtime resolves all paths inside the container. Links are not read, and replaced when written. Functions throw RolloutFailure, and
 * SandboxKilledError if code in the sandbox ended the sandbox.
 */
export function filesOf(sandbox: AgentSandbox, signal: AbortSignal): SandboxFiles {
  const { container, snapshot, suspect, pruned } = sandbox;
  const attempt = async <T>(call: () => Promise<T>): Promise<T | InputError> => {
    await pruned;
    try {
      return await call();
    } catch (error) {
      if (error instanceof SwefarmError && error.code === 'file_too_large')
        return failure('too_large', error.message);
      if (!(await isCausedByCode(error, suspect))) throw error;
      if ((await container.state()) === 'running') return failure('failed', errorMessage(error));
      throw new SandboxKilledError(`a command broke the sandbox: ${errorMessage(error)}`);
    }
  };
  return {
    write: (path, content, mode) =>
      attempt(async () => {
        await container.putFiles([{ path, content, mode }], signal);
        return null;
      }),
    read: (path, maxBytes) =>
      attempt(async () => {
        const content = await container.getFile(path, maxBytes, signal);
        const message = `${path} is missing, or no regular file (links are not followed)`;
        return content ?? failure('not_a_file', message);
      }),
    diff: () =>
      attempt(async () => {
        if (!snapshot) return failure('failed', 'the instance has no repository');
        const { patch, tooLarge } = await takePatch(container, snapshot, signal);
        return tooLarge ? failure('too_large', 'the patch is too large to be submitted') : patch;
      }),
  };
}

const failure = (code: InputError['code'], message: string): InputError => ({ code, message });
