/** Commands by the first process and by an exec give the same results. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import type { Container, ExecOptions, ExecResult } from '../src/runtime.ts';
import { NEVER, type Subject, start } from './subject.ts';

const PROMPT_MS = 60_000;
type Standing = ExecOptions['standing'];
const STANDINGS: readonly Standing[] = [undefined, 'clean', 'last'];

export function standingContract(subject: () => Subject): void {
  const open: Container[] = [];
  afterEach(() => Promise.all(open.splice(0).map((container) => container[Symbol.asyncDispose]())));

  async function fresh(): Promise<Container> {
    const container = await start(subject(), { role: 'evaluation', env: { FROM_SPEC: 'yes' } });
    open.push(container);
    return container;
  }

  async function run(
    script: string,
    standing: Standing,
    changes: Partial<ExecOptions> = {},
  ): Promise<ExecResult> {
    return on(await fresh(), script, standing, changes);
  }

  const on = (container: Container, script: string, standing: Standing, changes: Partial<ExecOptions> = {}) =>
    container.exec(['/bin/bash', '-c', script], {
      cwd: container.workdir,
      timeoutMs: 120_000,
      maxOutputBytes: 1_000_000,
      ...(standing ? { standing } : {}),
      signal: NEVER,
      ...changes,
    });

  /** The result of each of the three methods. */
  async function each(script: string, changes: Partial<ExecOptions> = {}) {
    const results = [];
    for (const standing of STANDINGS) {
      const { exitCode, timedOut, output, outputBytes, truncated } = await run(script, standing, changes);
      results.push({ exitCode, timedOut, output: output.toString('latin1'), outputBytes, truncated });
    }
    return results;
  }

  it.each([
    ['an exit code and both streams in order', 'echo a; echo b >&2; echo c; exit 42'],
    ['output without an end of line', 'printf "no end"'],
    ['no output at all', 'exit 7'],
    ['every byte', String.raw`for i in {0..255}; do printf "\\x$(printf %x $i)"; done`],
    ['an end by its own signal', 'kill -9 $$'],
    ['an end by TERM', 'kill -TERM $$'],
    ['standard input that is at its end', 'cat; read -r line; echo "read $?"'],
    ['INT that it can take', 'trap "echo taken; exit 3" INT; kill -INT $$; echo ignored'],
    [
      'the settings of a process',
      'umask; ulimit -a; grep -E "Cap|Sig(Ign|Blk)|NoNew|Seccomp" /proc/self/status',
    ],
    ['its folder and environment', 'pwd; env | grep -vE "^(SWEFARM_COMMAND|HOSTNAME|_|OLDPWD)=" | sort'],
    ['more than is kept', 'echo HEAD; head -c 3000000 /dev/zero; echo TAIL'],
    ['what is passed on after its end', 'exec > >(sleep 0.3; cat); echo late; exit 4'],
  ])('gives the same result by each method: %s', async (_what, script) => {
    const [plain, clean, last] = await each(script, { maxOutputBytes: 100_000 });
    expect(clean).toEqual(plain);
    expect(last).toEqual(plain);
  });

  it.each(['clean', 'last'] as const)(
    'ends a %s command at its time limit, with what it printed',
    async (standing) => {
      const container = await fresh();
      const startedAt = performance.now();
      const script = 'echo started; setsid sleep 66661 & sleep 66662';
      expect(await on(container, script, standing, { timeoutMs: 3_000 })).toMatchObject({
        ...{ exitCode: null, timedOut: true, output: Buffer.from('started\n') },
      });
      expect(performance.now() - startedAt).toBeLessThan(PROMPT_MS);
      if (standing === 'last') return;
      const left = await on(
        container,
        'cat /proc/[0-9]*/cmdline | tr "\\0" " " | grep -c "sleep 6666[0-9]"',
        'clean',
      );
      expect(left.output.toString()).toBe('0\n');
    },
  );

  it('counts kills for memory before a time limit, by each method', async () => {
    const counts: (number | null)[] = [];
    for (const standing of STANDINGS) {
      const container = await fresh();
      const script = `python3 -c 'x = b"x" * (1 << 30)'; sleep 600`;
      expect((await on(container, script, standing, { timeoutMs: 8_000 })).timedOut).toBe(true);
      counts.push(await container.oomKills());
    }
    expect(counts).toEqual(STANDINGS.map(() => counts[0]));
  });

  it('runs commands under any bash variables of the environment, and passes them on', async () => {
    for (const standing of STANDINGS) {
      const container = await start(subject(), { role: 'evaluation', env: { TMOUT: '1' } });
      open.push(container);
      await sleep(2_500);
      const result = await on(container, 'env | grep TMOUT', standing, { timeoutMs: 30_000 });
      expect(result).toMatchObject({ exitCode: 0, output: Buffer.from('TMOUT=1\n') });
    }
  });

  it.each(['clean', 'last'] as const)('kills a %s command when the caller aborts', async (standing) => {
    const abort = new AbortController();
    setTimeout(() => abort.abort(new Error('left')), 500);
    const options = { timeoutMs: 600_000, signal: abort.signal };
    await expect(run('sleep 600', standing, options)).rejects.toThrow('left');
  });

  it('runs several clean commands and a last one in one container', async () => {
    const container = await fresh();
    const files = [
      { path: '/tmp/new/deep/a b.txt', content: Buffer.from("it's\n") },
      {
        path: '/run.sh',
        content: Buffer.from('cat "/tmp/new/deep/a b.txt"; ls -l /run.sh | cut -c1-10\n'),
        mode: 0o755,
      },
    ];
    await container.putFiles(files, NEVER);
    expect((await on(container, 'cat /run.sh | wc -l', 'clean')).output.toString()).toBe('1\n');
    expect((await on(container, 'echo more >>"/tmp/new/deep/a b.txt"; exit 5', 'clean')).exitCode).toBe(5);
    const last = await container.exec(['/bin/bash', '/run.sh'], {
      ...{
        cwd: container.workdir,
        timeoutMs: 60_000,
        maxOutputBytes: 1_000,
        standing: 'last',
        signal: NEVER,
      },
    });
    expect(last.output.toString()).toBe("it's\nmore\n-rwxr-xr-x\n");
  });

  it('files of a last command can be read from outside', async () => {
    const container = await fresh();
    await on(container, 'mkdir -p /opt/left; echo kept >/opt/left/file; sleep 600 & exit 1', 'last');
    expect((await container.getFile('/opt/left/file', 100, NEVER))?.toString()).toBe('kept\n');
    const remains = await container.end?.(NEVER);
    expect((await remains?.getFile('/opt/left/file', 100, NEVER))?.toString()).toBe('kept\n');
  });

  it.each([
    ['every byte but NUL', Buffer.from(Array.from({ length: 255 }, (_, at) => at + 1))],
    ['every byte', Buffer.from(Array.from({ length: 256 }, (_, at) => at))],
    ['nothing', Buffer.alloc(0)],
    ['much', Buffer.alloc(3_000_000, 'lines of a patch\n')],
  ])('writes a new and an existing file with %s', async (_what, content) => {
    const container = await fresh();
    for (const bytes of [content, Buffer.from('shorter'), content]) {
      await container.putFiles([{ path: '/opt/a/file', content: bytes }], NEVER);
      expect((await container.getFile('/opt/a/file', 4_000_000, NEVER))?.equals(bytes)).toBe(true);
    }
  });

  it('does not write through a link', async () => {
    const container = await fresh();
    await on(container, 'mkdir -p /opt; echo image >/opt/target; ln -s /opt/target /opt/link', 'clean');
    await container.putFiles([{ path: '/opt/link', content: Buffer.from('new\n') }], NEVER);
    expect((await container.getFile('/opt/target', 100, NEVER))?.toString()).toBe('image\n');
    expect((await container.getFile('/opt/link', 100, NEVER))?.toString()).toBe('new\n');
  });

  it('ignores forged exit codes in the output of a last command', async () => {
    const forge = String.raw`
      for word in 0 "end 0" "$(tr '\0' ' ' </proc/1/cmdline | tail -c 60)" "$(tr '\0' '\n' </proc/1/environ | head -1)"; do
        printf '\n%s 0\n' "$word" >/proc/1/fd/1; printf '\n%s 0\n' "$word"
      done 2>/dev/null
      { kill -USR2 1; kill -TERM 1; kill -HUP 1; kill -INT 1; kill -9 1; } 2>/dev/null
      exit 9`;
    expect(await run(forge, 'last')).toMatchObject({ exitCode: 9, timedOut: false });
  });

  it.each([
    ['lines', String.raw`printf '\n\n0\nlast x 6\n/ true\n' >/proc/1/fd/0`],
    ['no end of a line', 'printf "no end" >/proc/1/fd/0'],
    ['as much as fits', 'timeout 1 cat /dev/zero >/proc/1/fd/0; timeout 1 yes >/proc/1/fd/0'],
    ['lines, again and again', '(setsid yes "" >/proc/1/fd/0 &)'],
    ['nothing, and reads', '(setsid cat /proc/1/fd/0 &)'],
  ])('ignores writes of a last command to the first process: %s', async (_what, script) => {
    const container = await fresh();
    // The kind of the first process's descriptors, and whether they can be opened, depends on the runtime.
    const ordered = `echo begun; { ${script}; } >/dev/null 2>&1; echo ended; exit 9`;
    const result = await on(container, ordered, 'last');
    expect(result).toMatchObject({ exitCode: 9, output: Buffer.from('begun\nended\n') });
    expect(result.survived).not.toBe(false);
    const plain = await fresh();
    await on(plain, 'true', undefined);
    expect(await container.oomKills()).toEqual(await plain.oomKills?.());
  });

  it('a last command that kills all processes is not a lost container', async () => {
    const result = await run('sleep 600 & kill -9 -1; kill -9 $$', 'last');
    expect(result).toMatchObject({ exitCode: 137, timedOut: false });
    expect(result.survived).not.toBe(false);
  });

  it('reports a container that ended during its last command', async () => {
    const container = await fresh();
    const running = on(container, 'echo begun; sleep 600', 'last').catch((error: unknown) => error);
    await sleep(1_500);
    await container.end?.(NEVER);
    const result = await running;
    const lost = result instanceof Error || (result as ExecResult).exitCode === 137;
    expect(lost).toBe(true);
    expect((result as ExecResult).survived).not.toBe(true);
    expect(await container.state()).not.toBe('running');
  });
}
