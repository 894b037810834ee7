/** Requirements of every runtime for the shell: hostile commands, each followed by an ordinary one that must work. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CommandResult, SandboxKilledError, type Shell } from '../src/command.ts';
import type { Container } from '../src/runtime.ts';
import { openShell } from '../src/shell.ts';
import {
  type ContractOptions,
  describeIf,
  LIMITS,
  NEVER,
  OPTIONS,
  type Subject,
  shellOf,
  start,
  TEST_IMAGE_MARKER,
} from './subject.ts';

const text = (result: CommandResult): string =>
  Buffer.concat([result.head, result.tail ?? Buffer.alloc(0)]).toString();

export function shellContract(subject: () => Subject, options: ContractOptions): void {
  const whole = options.whole !== false;
  let container: Container;
  let shell: Shell;
  const run = (command: string, timeoutMs = 60_000, maxOutputBytes = 20_000) =>
    shell.run(command, { timeoutMs, maxOutputBytes, signal: NEVER });
  /** Asserts that the next command works. */
  const expectAlive = async () => {
    expect(await run('echo "$MARK in $PWD"')).toMatchObject({ exitCode: 0, tail: null, note: null });
    expect(text(await run('echo "$MARK in $PWD"'))).toBe(`activated in ${container.workdir}\n`);
  };

  beforeAll(async () => {
    container = await start(subject());
    shell = await openShell(container, {
      activate: `export GIVEN="it's 'quoted'"; echo noise; MARK=activated; export MARK; helper() { echo "helped $1"; }`,
    });
  });
  afterAll(async () => {
    await shell[Symbol.asyncDispose]();
    await container[Symbol.asyncDispose]();
  });

  describe('ordinary commands', () => {
    it.each([
      ['echo a; echo b >&2; echo c', 0, 'a\nb\nc\n'],
      ['false', 1, ''],
      ['helper me; echo "$GIVEN"', 0, "helped me\nit's 'quoted'\n"],
      ['cat; echo "stdin is empty"', 0, 'stdin is empty\n'],
      ['not_a_command', 127, 'bash: line 1: not_a_command: command not found\n'],
      ['echo a\necho b\n', 0, 'a\nb\n'],
      ["cat <<'EOF'\nit $HOME `x`\nEOF", 0, 'it $HOME `x`\n'],
      ['echo one; echo two > /dev/stderr; echo three | tee /dev/stderr', 0, 'one\ntwo\nthree\nthree\n'],
      ['echo $# "$-"', 0, '0 hBc\n'],
      ['', 0, ''],
      ['kill -TERM $BASHPID', 143, ''],
    ])('%j', async (command, exitCode, output) => {
      const result = await run(command);
      expect({ exitCode: result.exitCode, output: text(result), note: result.note }).toEqual({
        exitCode,
        output,
        note: null,
      });
    });

    it('start without state of an earlier command', async () => {
      await run('cd /; export LEAK=1; leak=1; set -f; umask 0; alias x=y; ulimit -n 64');
      expect(
        text(await run('echo "[$LEAK$leak]" $PWD $(umask); echo /usr/bi*; ulimit -n | grep -c "^64$"')),
      ).toBe(`[] ${container.workdir} 0022\n/usr/bin\n0\n`);
    });

    it('report a syntax error as bash does', async () => {
      const result = await run('if true; then');
      expect(result.exitCode).toBe(2);
      expect(text(result)).toContain('syntax error');
      await expectAlive();
    });

    it('run many in a row', async () => {
      for (let i = 0; i < 100; i++) expect(text(await run(`echo ${i}`))).toBe(`${i}\n`);
    });
  });

  describe('commands that attack the shell', () => {
    it.each([
      ['exit 7', 7],
      ['exec true', 0],
      ['exec sh -c "exit 5"', 5],
      ['trap "echo trapped" EXIT; exit 6', 6],
      ['set -e; false; echo never', 1],
      ['set -u; echo $NOT_SET; echo never', 1],
      ['kill 0; sleep 5', 143],
      ['kill -9 0', 137],
      ['exec 1>&- 2>&-; echo x', 1],
      ['exec 0<&- 3<&- 4>&- 5>&- 6<&- 7>&-', 0],
      ['trap "" TERM INT HUP; true', 0],
      ['set -m; sleep 0.05 & wait', 0],
      ['unset PATH; echo hi', 0],
      ['readonly PATH HOME; builtin true', 0],
      ['LC_ALL=C; export LC_ALL; IFS=x; shopt -s extglob nullglob; true', 0],
      ['while true; do break; done', 0],
    ])('%s', async (command, exitCode) => {
      const result = await run(command);
      expect(text(result)).not.toContain('never');
      expect({ exitCode: result.exitCode, note: result.note }).toEqual({ exitCode, note: null });
      await expectAlive();
    });

    it('is reopened after kill -9 $$, with the output so far', async () => {
      const result = await run('echo before; sleep 0.2; kill -9 $$; sleep 300');
      expect(result).toMatchObject({ exitCode: null, note: 'shell_reopened' });
      expect(text(result)).toContain('before');
      await expectAlive();
      const count = 'cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" " " | grep -c "sleep 3[0]0"';
      if (options.isolated) expect(text(await run(count))).toBe('0\n');
    });

    it('leaves no process of a lost command, even without exec', async () => {
      await run('(echo $BASHPID >stray; while :; do :; done) & sleep 0.3; kill -9 $$; sleep 300');
      // The machine's init may reap an ended process late.
      const isGone = `for i in {1..100}; do
        read -r _ _ state _ 2>/dev/null </proc/$(cat stray)/stat && [[ $state != Z ]] || exit 7
        sleep 0.1
      done`;
      expect((await run(isGone)).exitCode).toBe(7);
      await run('rm stray');
    });

    it('revives or is reopened after kill -STOP $$', async () => {
      const result = await run('kill -STOP $$; sleep 60', 400);
      expect(result).toMatchObject({ exitCode: null, note: 'timed_out' });
      await expectAlive();
    });

    // Commands that destroy more than their process group run only in a sandbox with the test image's marker.
    describeIf(options.isolated, 'destructive ones', () => {
      const only = `[ -e ${TEST_IMAGE_MARKER} ] || exit 99;`;

      it('survives kill -9 -1', async () => {
        expect((await run(`${only} kill -9 -1`)).note).toBe('shell_reopened');
        expect(await container.state()).toBe('running');
        await expectAlive();
      });

      it('survives an emptied /tmp', async () => {
        // A second try, because the shell may write into the folder during its removal.
        const empty = 'rm -rf /tmp/.sf-* /tmp/*';
        expect((await run(`${only} ${empty} || ${empty}`)).exitCode).toBe(0);
        await expectAlive();
        expect(text(await run('sleep 0.1; seq 30000 | tail -1'))).toBe('30000\n');
      });
    });
  });

  describeIf(whole, 'sizes and bytes', () => {
    it('accepts commands of 120 KB', async () => {
      const body = 'x'.repeat(120_000);
      expect(text(await run(`v='${body}'; echo \${#v}`))).toBe('120000\n');
    });

    it('returns NUL and bytes that are not UTF-8', async () => {
      const result = await run(String.raw`printf 'a\0b\377\376\0\0c\n\r'`);
      expect(result.head).toEqual(Buffer.from('a\0b\xff\xfe\0\0c\n\r', 'latin1'));
    });

    it('accepts commands in UTF-8 and drops NUL as bash does', async () => {
      expect(text(await run('echo "größe \0→ 漢字"'))).toBe('größe → 漢字\n');
    });

    it.each([100, 511, 512, 513, 4_096, 19_999, 20_000, 60_000, 70_000, 300_000])(
      '%i bytes',
      async (size) => {
        const result = await run(`head -c ${size} /dev/zero | tr '\\0' x`);
        expect(result).toMatchObject({ exitCode: 0, outputBytes: size, note: null });
        const stored = result.head.length + (result.tail?.length ?? 0);
        expect(stored).toBe(Math.min(size, 20_000));
        expect(result.tail === null).toBe(size <= 20_000);
      },
    );

    it('returns head and tail of slow output', async () => {
      const slow = 'for i in 1 2 3; do echo start$i; sleep 0.05; done; seq 1 20000; echo end';
      const result = await run(slow, 20_000, 1_000);
      expect(result.head.toString().startsWith('start1\nstart2\nstart3\n1\n')).toBe(true);
      expect(result.tail?.toString().endsWith('20000\nend\n')).toBe(true);
    });

    it('1 GB of output fills neither worker nor disk', async () => {
      const before = process.memoryUsage.rss();
      // Only the temporary folder is measured, because other processes of the machine write to the file system.
      const used = 'du -skx $(dirname "$(mktemp -u)") | cut -f1';
      const usedBefore = Number(text(await run(used)));
      const result = await run('yes 0123456789abcde | head -c 1000000000; echo; echo END', 120_000);
      expect(result).toMatchObject({ exitCode: 0, outputBytes: 1_000_000_005 });
      expect(result.head.length + (result.tail?.length ?? 0)).toBe(20_000);
      expect(result.tail?.toString().endsWith('END\n')).toBe(true);
      expect(process.memoryUsage.rss() - before).toBeLessThan(200e6);
      expect(Number(text(await run(used))) - usedBefore).toBeLessThan(100_000);
    });
  });

  describeIf(whole, 'children', () => {
    it('does not wait for a child with stdout open, and does not kill it', async () => {
      const child = 'until [ -e asked ]; do sleep 0.1; done; echo late; echo late >&2; touch alive';
      const result = await run(`rm -f alive asked; (${child}) & echo now`);
      expect(result).toMatchObject({ exitCode: 0, note: null });
      expect(text(result)).toBe('now\n');
      // The child waits for this file.
      await run('touch asked');
      await expect.poll(async () => text(await run('ls alive')), { timeout: 60_000 }).toBe('alive\n');
    });

    it('late output of an earlier command is not in a later observation', async () => {
      await run('(for i in $(seq 60); do echo noise; sleep 0.02; done) & sleep 0.1; echo x');
      expect(text(await run('sleep 0.2; echo quiet'))).toBe('quiet\n');
    });

    it('replies while a child prints endlessly', async () => {
      const result = await run('yes > /dev/stdout & echo $! > pid; sleep 0.1; echo done');
      expect(result).toMatchObject({ exitCode: 0, note: null });
      expect((await run('kill -9 $(cat pid); rm pid')).exitCode).toBe(0);
      await expectAlive();
    });
  });

  describe('time limits', () => {
    it('kill the whole tree and return the output', async () => {
      const result = await run('echo before; (sleep 77771 & sleep 77772) | cat & sleep 77773', 3_000);
      expect(result).toMatchObject({ exitCode: null, note: 'timed_out' });
      expect(text(result)).toBe('before\n');
      expect(result.seconds).toBeLessThan(90);
      await expectGone('sleep 7777[0-9]');
      await expectAlive();
    });

    it('kill processes in other sessions', async () => {
      const sessions =
        'setsid sleep 88881 & (setsid nohup sleep 88882 >/dev/null 2>&1 &); set -m; (while :; do sleep 88883; done) & sleep 88884';
      expect((await run(sessions, 500)).note).toBe('timed_out');
      await expectGone('sleep 8888[0-9]');
      await expectAlive();
    });

    it('kill commands that ignore signals or stop themselves', async () => {
      const deaf = 'trap "" TERM INT HUP QUIT; while :; do sleep 0.1; done';
      for (const command of [deaf, 'kill -STOP $BASHPID'])
        expect((await run(command, 300)).note).toBe('timed_out');
      await expectAlive();
    });

    it('spare a server of an earlier command', async () => {
      await run('sleep 99991 >/dev/null 2>&1 & echo $! > server');
      expect((await run('sleep 60', 300)).note).toBe('timed_out');
      expect((await run('kill -0 $(cat server) && kill -9 $(cat server); rm server')).exitCode).toBe(0);
    });

    it('an abort kills the command', async () => {
      const abort = new AbortController();
      const running = shell.run('sleep 66661', { ...OPTIONS, signal: abort.signal });
      setTimeout(() => abort.abort(new Error('left')), 200);
      await expect(running).rejects.toThrow('left');
      await expectGone('sleep 66661');
      await expectAlive();
    });
  });

  /** Asserts that the command line of no process in the sandbox begins with the pattern. */
  async function expectGone(pattern: string): Promise<void> {
    const count = `n=0; for f in /proc/[0-9]*/cmdline; do { tr '\\0' ' ' < $f | grep -q '^${pattern}'; } 2>/dev/null && n=$((n+1)); done; echo $n`;
    expect(text(await run(count))).toBe('0\n');
  }

  describeIf(options.limits.pids === 'enforced', 'pids limit', () => {
    it('makes one command fail and reports it', async () => {
      const result = await run('for i in $(seq 400); do sleep 20 & done; wait', 8_000);
      expect(['killed_by_limit', 'timed_out', 'shell_reopened']).toContain(result.note);
      await run('sleep 1');
      await expectAlive();
    });
  });

  describeIf(options.limits.pids === 'watched', 'pids limit, watched', () => {
    it('kills the excess processes', async () => {
      await run('for i in $(seq 400); do sleep 66662 >/dev/null 2>&1 & echo $! >>many; done', 60_000);
      const alive = `cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -o 'sleep 6666[2]' | wc -l`;
      const left = async (): Promise<number> => Number(text(await run(alive)));
      await expect.poll(left, { timeout: 120_000, interval: 200 }).toBeLessThanOrEqual(LIMITS.pids);
      await run('kill -9 $(cat many); rm many');
      await expectAlive();
    });
  });

  describeIf(options.limits.pids !== undefined, 'a fork bomb', () => {
    it('ends at its time limit, and the sandbox runs on', async () => {
      const result = await run('bomb() { bomb | bomb & bomb; }; bomb', 1_000);
      expect(result.note).not.toBeNull();
      await run('sleep 1');
      await expectAlive();
    });
  });

  it('a missing container is an infrastructure failure', async () => {
    const other = await start(subject());
    const lost = await shellOf(other);
    await other[Symbol.asyncDispose]();
    const hello = lost.run('echo hi', { ...OPTIONS, timeoutMs: 5_000 });
    await expect(hello).rejects.toMatchObject({ failureClass: 'sandbox_lost' });
    expect(new SandboxKilledError('x')).not.toHaveProperty('failureClass');
  });

  it('an image without bash is a failure of the instance', async () => {
    const image = subject().imageWithoutBash;
    if (image === null) return;
    await using bare = await start({ ...subject(), image });
    await expect(shellOf(bare)).rejects.toMatchObject({ failureClass: 'no_bash' });
  });
}
