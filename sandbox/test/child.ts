/**
 * A separate process for the tests of runtimes without an engine: starts a sandbox and stays until it is killed, or runs one as
 * any user. Prints one line of JSON.
 */
import { text } from 'node:stream/consumers';
import type { Runtime } from '../src/runtime.ts';
import { LIMITS, NEVER, OPTIONS, shellOf, spec } from './subject.ts';

/** @param seconds sleep of the processes in the sandbox, by which a test identifies the processes on the machine */
export async function child(
  runtime: Runtime,
  image: string,
  task: string | undefined,
  seconds: string | undefined,
): Promise<void> {
  const container = await runtime.start(
    spec(await runtime.ensureImage(image, NEVER), {
      limits: { ...LIMITS, pids: 40, memoryBytes: 200_000_000 },
    }),
    NEVER,
  );
  const sh = async (script: string) =>
    (await container.exec(['/bin/sh', '-c', script], OPTIONS)).output.toString().trim();
  /** Runs a script under the process limit of the model's shell, which is lower than the limit of execs. */
  const byShell = async (script: string): Promise<string> => {
    return text(await container.open(['/bin/sh', '-c', script], NEVER));
  };

  /** Returns exit code and note of a command that exceeds the memory limit, and the output of the next command. */
  const byHog = async (): Promise<string> => {
    await using shell = await shellOf(container);
    const line = 'python3 -c \'x = b"x" * 400_000_000; import time; time.sleep(600)\'';
    const { exitCode, note } = await shell.run(line, OPTIONS);
    const next = await shell.run('echo next', OPTIONS);
    return `${exitCode} ${note} ${next.head.toString().trim()}`;
  };

  /** Returns who listens, and what a program inside reads from the port. */
  const byListener = async (): Promise<string> => {
    await using listener = await container.listen((socket) => socket.end('heard'), NEVER);
    const program = `import socket; print(socket.create_connection(("127.0.0.1", ${listener.port})).recv(9).decode())`;
    const { output } = await container.exec(['python3', '-c', program], OPTIONS);
    return `${listener.by} ${output.toString().trim()}`;
  };

  /** Replaces an unreadable folder, and returns the content of the new folder. Returns null if the runtime cannot replace folders. */
  const byReplacing = async (): Promise<string | null> => {
    if (!container.replaceFolders) return null;
    await sh('mkdir -p /tests/a; echo old >/tests/a/b; chmod 0 /tests/a');
    const files = [{ path: '/tests/new', content: Buffer.from('new') }];
    await container.replaceFolders([{ path: '/tests', mode: 0o755 }], files, NEVER);
    return sh('cd /tests; echo $(ls) $(cat new)');
  };

  if (task === 'stay') {
    const sleeping = sh(`setsid sleep ${seconds} & sleep ${seconds}`);
    console.log(JSON.stringify({ id: container.id }));
    await sleeping;
  } else {
    const check = await runtime.check(NEVER);
    const answer = {
      usable: check.usable,
      problems: check.problems,
      id: await sh('id -u'),
      hog: await byHog(),
      file: await sh(
        'echo written > /testbed/file; cat /testbed/file; chmod 000 /testbed; mkdir -p /tmp/a/b',
      ),
      // pip renames and recreates folders like this; the overlay must be able to mark folders.
      folders: await sh('cd /usr/lib/python3*/json/.. && mv json a && mkdir json && rm -rf a && ls json'),
      listens: await byListener(),
      replaced: await byReplacing(),
      forks: await byShell('for i in $(seq 100); do sleep 30 >/dev/null 2>&1 & done; echo end'),
      after: await sh('echo alive'),
    };
    await container[Symbol.asyncDispose]();
    const left = await runtime.listOwned();
    await runtime[Symbol.asyncDispose]();
    console.log(JSON.stringify({ ...answer, left }));
  }
}
