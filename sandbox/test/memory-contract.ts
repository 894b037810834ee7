/**
 * Requirements of every runtime for its memory limit, by the kernel or by the watchdog: the largest consumer is killed and
 * reported, other processes are not.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type CommandResult, SandboxKilledError, type Shell } from '../src/command.ts';
import type { Container } from '../src/runtime.ts';
import {
  describeIf,
  LIMITS,
  OPTIONS,
  PATH,
  printed,
  type Subject,
  sh,
  shellOf,
  start,
  WHOLE,
} from './subject.ts';

const MEGABYTE = 1_000_000;
const limits = { ...LIMITS, memoryBytes: 200 * MEGABYTE };
/** Returns a command that allocates megabytes for more than a second, because the watchdog measures once a second. */
const hog = (megabytes: number): string =>
  `python3 -c 'x = b"x" * ${megabytes * MEGABYTE}; import time; time.sleep(3600)'`;

/**
 * @param by whether the kernel or the watchdog enforces the limit; the kernel's part is the same in every runtime and runs
 * completely only in `npm run ci:full`
 */
export function memoryContract(subject: () => Subject, by: 'enforced' | 'watched'): void {
  let container: Container;
  let shell: Shell;
  let neighbour: Container;
  const run = (command: string, timeoutMs = 120_000): Promise<CommandResult> =>
    shell.run(command, { ...OPTIONS, timeoutMs });
  const open = async (): Promise<void> => {
    container = await start(subject(), { limits });
    shell = await shellOf(container);
  };
  const close = async (): Promise<void> => {
    await shell[Symbol.asyncDispose]();
    await container[Symbol.asyncDispose]();
  };
  const neighbourWorks = async (): Promise<void> => {
    expect(await printed(neighbour, 'kill -0 $(cat /tmp/holds) && echo holds')).toBe('holds\n');
  };

  beforeAll(async () => {
    await open();
    // A limit that counted the processes of both sandboxes together could kill the neighbour's process.
    neighbour = await start(subject(), { limits });
    await sh(neighbour, `${hog(120)} >/dev/null 2>&1 & echo $! >/tmp/holds`);
  });
  afterAll(async () => {
    await close();
    await neighbour[Symbol.asyncDispose]();
  });

  it('kills a command above the limit and reports it', async () => {
    expect(await run(hog(400))).toMatchObject({ exitCode: 137, note: 'killed_by_limit' });
    expect(await run('echo "still $((6 * 7))"')).toMatchObject({ exitCode: 0, note: null });
    expect(await container.state()).toBe('running');
    await neighbourWorks();
  });

  describeIf(by === 'watched' || WHOLE, 'processes together and plain execs', () => {
    it('kills a process of many that exceed the limit together, and reports it', async () => {
      const together = `for i in 1 2 3 4; do ${hog(90)} & done; wait -n; echo "one ended with $?"; kill -9 $(jobs -p) 2>/dev/null; exit 5`;
      const result = await run(together);
      expect(result.head.toString()).toContain('one ended with 137');
      expect(result).toMatchObject({ exitCode: 5, note: 'killed_by_limit' });
      await neighbourWorks();
    });

    it('counts the kill of a plain exec', async () => {
      const before = await container.oomKills();
      const line = ['/bin/sh', '-c', `exec ${hog(400)}`];
      const result = await container.exec(line, { ...OPTIONS, env: { PATH } });
      expect(result).toMatchObject({ exitCode: 137, timedOut: false });
      expect(await container.oomKills()).toBe((before ?? Number.NaN) + 1);
      expect(await container.state()).toBe('running');
    });
  });

  describeIf(WHOLE, 'hogs without end', () => {
    it('are survived, or end the sandbox by its own limit', async () => {
      const storm = `for i in $(seq 12); do (while :; do ${hog(60)} 2>/dev/null; done) & done; wait`;
      const ended = await run(storm, 6_000).catch((error: unknown) => error);
      if (ended instanceof SandboxKilledError) {
        expect(await container.state()).toBe('own_limit');
        await close();
        await open();
      } else if (ended instanceof Error) {
        throw ended;
      } else {
        expect(['timed_out', 'killed_by_limit', 'shell_reopened']).toContain((ended as CommandResult).note);
        expect(await container.state()).toBe('running');
      }
      const exit = async () => (await run('exit 4')).exitCode;
      await expect.poll(exit, { timeout: 60_000, interval: 200 }).toBe(4);
      expect(await run('exit 4')).toMatchObject({ exitCode: 4, note: null });
      await neighbourWorks();
    });
  });
}
