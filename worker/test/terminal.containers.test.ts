/** Tests a terminal in a sandbox on real runtimes: keys, signals, window size, and its end. */
import { spawnSync } from 'node:child_process';
import { PassThrough } from 'node:stream';
import { hostRuntime } from '@swefarm/sandbox';
import { describe, expect, test, vi } from 'vitest';
import { hasTerminal, openTerminal } from '../src/terminal.ts';
import { useMachine } from './installedscene.ts';
import { RUNTIMES } from './matrix/runtimes.ts';

vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 });

const signal = new AbortController().signal;
const owner = { farm: 'f', worker: 'w', pid: process.pid, pid_started: '0', rollout_id: 'r.i.0', attempt: 1 };

/** On the runtime `host`, `script` makes the terminal. The small image of the other runtimes has only python3. */
describe.each([...RUNTIMES, 'host'])('on %s', (name) => {
  const machine = useMachine(name === 'host' ? 'rootfs' : name);

  test('a person works in a terminal', async ({ skip }) => {
    const { runtime, image, folder } = await machine();
    await using host = name === 'host' ? await hostRuntime({ scratchDir: folder }) : null;
    if (host && spawnSync('script', ['--version']).error) skip('this machine has no program script');
    const limits = { cpus: 1, memoryBytes: 2 ** 30, pids: 256, diskBytes: null };
    const used = host ?? runtime;
    await using container = await used.start(
      {
        ...{ image: await used.ensureImage(host ? 'empty' : image, signal), owner, limits },
        ...{ role: 'agent', network: 'none', workdir: '/testbed', env: {} },
      },
      signal,
    );
    expect(await hasTerminal(container, signal)).toBe(true);
    const [input, output] = [new PassThrough(), new PassThrough()];
    let seen = '';
    output.on('data', (bytes: Buffer) => {
      seen += bytes.toString();
    });
    const size = { rows: 33, columns: 101 };
    let resized = (): void => undefined;
    const screen = {
      ...{ input, output, size: () => size },
      onResize(changed: () => void) {
        resized = changed;
        return () => undefined;
      },
    };
    const without = host ? 'python3() { return 1; }; export -f python3;' : '';
    const over = openTerminal(container, `${without} export ACTIVE=yes`, screen, signal);
    const until = async (text: string | RegExp) => {
      const has = () => (typeof text === 'string' ? seen.includes(text) : text.test(seen));
      await expect.poll(() => (has() ? text : seen), { timeout: 60_000 }).toBe(text);
      seen = '';
    };
    await until(/(testbed|work)# $/);
    input.write('tty; stty size; echo $ACTIVE $TERM; env | grep -c __SF\r');
    await until(/\/dev\/pts\/\d+\r\n33 101\r\nyes xterm-256color\r\n0\r\n/);
    Object.assign(size, { rows: 44, columns: 120 });
    // The size changes while a program runs.
    input.write('until [ "$(stty size)" = "44 120" ]; do sleep 0.1; done; echo w"ide"\r');
    resized();
    await until('wide\r\n');
    // Ctrl-C ends the command, but not the shell.
    input.write('echo w"ait"; sleep 1000\r');
    await until('wait\r\n');
    input.write('\u0003');
    await until(/\^C[\s\S]*# $/);
    input.write('exit\r');
    await over;
  });
});
