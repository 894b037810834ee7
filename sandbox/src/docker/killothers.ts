/** Kills every process of a container except the first, from outside. */
import { poll } from '@swefarm/shared';
import type Docker from 'dockerode';
import { engineFailure, statusCode } from '../engine/errors.ts';
import type { Engine } from '../engine/settings.ts';
import { answerAbout } from './stoppedstarts.ts';

const KILL_WAIT_MS = 5_000;

/**
 * The first process kills all others on USR1, which needs no free process slot. Resolves when the earlier processes are gone, or after
 * {@link KILL_WAIT_MS}: a late kill would hit the next shell. Throws RolloutFailure `engine_unreachable`.
 */
export async function killOthers(container: Docker.Container, engine: Engine): Promise<void> {
  try {
    const first = String((await answerAbout(container, container.inspect())).State.Pid);
    const others = (await listPids(container, engine))?.filter((pid) => pid !== first) ?? null;
    // If there is no other process, the end of the kill cannot be observed, and a late kill could hit the next command.
    if (others?.length === 0) return;
    const before = new Set(others);
    await answerAbout(container, container.kill({ signal: 'SIGUSR1' }));
    const areGone = async (): Promise<boolean> => {
      const now = await listPids(container, engine);
      return now !== null && !now.some((pid) => before.has(pid));
    };
    await poll(areGone, { pauseMs: 20, withinMs: KILL_WAIT_MS });
  } catch (error) {
    // An error with a status means that the container is stopped or gone, so that none of its processes is left.
    if (statusCode(error) === null) throw engineFailure(error, 'engine_unreachable', 'killing processes');
  }
}

/** Returns process ids on the host; null if the engine cannot list them (Podman, while processes start and end too fast). */
async function listPids(container: Docker.Container, engine: Engine): Promise<string[] | null> {
  // Given options of `ps`, Podman runs `ps` inside, where no process slot may be free. For `hpid`, Podman starts no process.
  const [options, title] = engine === 'podman' ? ['hpid', 'HPID'] : ['-eo pid', 'PID'];
  const top: { Titles?: string[]; Processes?: string[][] } = await answerAbout(
    container,
    container.top({ ps_args: options }),
  );
  const column = top.Titles?.indexOf(title) ?? -1;
  return top.Processes?.map((row) => row[column] ?? '') ?? null;
}
