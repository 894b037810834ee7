/** Simulates the sandbox of a session in a dry run: command n gets the output of the n-th stored command. */
import type { CommandResult, Shell } from '@swefarm/sandbox';
import { type ArtifactContent, type InputError, SENTINEL, type Trajectory } from '@swefarm/shared';
import type { SandboxFiles } from '../agent/inputs.ts';
import type { Task } from '../rollout/context.ts';
import { openSession } from '../rollout/session.ts';

type StoredCommand = { command: string; output: string; exitCode: number | null };

/** Runs the session until its driver submits or ends it. */
export async function playSession(task: Task, { trajectory, patch }: ArtifactContent): Promise<void> {
  const session = await openSession(task);
  const shell = shellOf(trajectory ? commandsOf(trajectory) : []);
  const end = await task.clock.time('agent', () =>
    session.play({ workdir: '/testbed', shell, files: filesOf(patch) }),
  );
  task.trace.trajectory = end.trajectory;
}

/** Returns the stored commands with their outputs. An observation in another form than the default counts as a whole as output. */
function commandsOf({ turns, messages }: Trajectory): StoredCommand[] {
  return turns.flatMap(({ message, commands }, at) => {
    const seen = messages
      .slice(message + 1, turns[at + 1]?.message)
      .filter(({ role }) => role !== 'assistant');
    return commands.map(({ command, exit_code: exitCode }, nth) => {
      const text = seen[nth]?.content ?? '';
      return { command, exitCode, output: /<output>\n?([\s\S]*?)\n?<\/output>/.exec(text)?.[1] ?? text };
    });
  });
}

function shellOf(stored: readonly StoredCommand[]): Shell {
  let done = 0;
  return {
    async run(script, { maxOutputBytes }): Promise<CommandResult> {
      const next = stored[done];
      done += 1;
      const output = Buffer.from(script.includes(SENTINEL) ? `${SENTINEL}\n` : outputOf(script, next, done));
      const head = output.subarray(0, maxOutputBytes);
      const exitCode = next?.exitCode ?? 0;
      return { exitCode, head, tail: null, outputBytes: head.length, seconds: 0, note: null };
    },
    [Symbol.asyncDispose]: async () => undefined,
  };
}

function outputOf(script: string, stored: StoredCommand | undefined, nth: number): string {
  if (!stored) return `[dry run: the stored rollout has no command ${nth}]\n`;
  if (stored.command.trim() === script.trim()) return stored.output;
  return `[dry run: the stored rollout ran this here: ${stored.command}]\n${stored.output}`;
}

function filesOf(patch: string | null): SandboxFiles {
  const none: InputError = { code: 'not_a_file', message: 'a dry run has no files' };
  return { write: async () => null, read: async () => none, diff: async () => Buffer.from(patch ?? '') };
}
