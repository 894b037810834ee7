/** Completion scripts in real shells on a terminal, and man pages read by `man` and mandoc. */
import { execFile, spawn } from 'node:child_process';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { beforeAll, expect, test } from 'vitest';
import { run } from './cli.ts';

const execute = promisify(execFile);
const MARK = '\u0018';

let folder: string;
beforeAll(async () => {
  folder = await temporaryFolder('completion-');
  await writeFile(join(folder, 'results-1.jsonl'), '');
  await mkdir(join(folder, 'results-dir'));
  for (const shell of ['bash', 'zsh', 'fish'])
    await writeFile(join(folder, `swefarm.${shell}`), (await run(['completion', shell])).stdout);
});

const installed = (program: string): Promise<boolean> =>
  execute('sh', ['-c', `command -v ${program}`]).then(
    () => true,
    () => false,
  );

/** Command line before the Tab key, and after it. `swefarm repo` has one completion, `report`. */
const TYPED: readonly [before: string, after: string][] = [
  ['swefarm repo', 'swefarm report '],
  ['swefarm dataset spl', 'swefarm dataset split '],
  ['swefarm report --resam', 'swefarm report --resamples '],
  ['swefarm report --format mark', 'swefarm report --format markdown '],
  ['swefarm report --format=mark', 'swefarm report --format=markdown '],
  ['swefarm report results-1', 'swefarm report results-1.jsonl '],
  ['swefarm report --output results-1', 'swefarm report --output results-1.jsonl '],
  ['swefarm dataset fetch --output-dir results', 'swefarm dataset fetch --output-dir results-dir/'],
  ['swefarm completion fi', 'swefarm completion fish '],
  ['swefarm compare results-1', 'swefarm compare results-1.jsonl '],
  ['swefarm compare a.jsonl results-1', 'swefarm compare a.jsonl results-1.jsonl '],
  ['swefarm man repo', 'swefarm man report '],
  ['swefarm help repo', 'swefarm help report '],
  ['swefarm report --seed results-1', 'swefarm report --seed results-1'],
];

/** Binds Ctrl-X to a command that prints the command line between the marks `<<` and `>>`. */
const SHELLS = {
  bash: {
    command: 'bash --norc --noprofile -i',
    setup: `PS1=; shown() { echo "<<$READLINE_LINE>>"; READLINE_LINE=; }; bind -x '"\\C-x": shown'; source swefarm.bash`,
  },
  zsh: {
    command: 'zsh -f -i',
    setup:
      'PS1=; autoload -Uz compinit; compinit -D -u; source ./swefarm.zsh; shown() { print -r -- "<<$BUFFER>>"; BUFFER=; }; zle -N shown; bindkey "^X" shown',
  },
};

/** Types lines, each with Tab, into a shell on a terminal. Returns the command lines that result. */
async function typedInto({ command, setup }: (typeof SHELLS)['bash']): Promise<string[]> {
  const shell = spawn('script', ['-qec', command, '/dev/null'], {
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: folder, TERM: 'dumb', LC_ALL: 'C.UTF-8' },
  });
  let output = '';
  shell.stdout.on('data', (chunk) => {
    output += chunk;
  });
  const ended = new Promise((resolve) => shell.once('close', resolve));
  shell.stdin.write(`${setup}; echo rea''dy\n`);
  await expect.poll(() => output).toMatch(/^ready/m);
  const lines: string[] = [];
  for (const [before] of TYPED) {
    output = '';
    shell.stdin.write(`${before}\t${MARK}`);
    await expect.poll(() => output).toMatch(/<<.*>>/s);
    lines.push(/<<(.*?)>>/s.exec(output)?.[1] ?? '');
  }
  shell.stdin.write('exit\n');
  await ended;
  return lines;
}

test.for(['bash', 'zsh'] as const)(
  '%s completes commands, options, choices and paths',
  async (name, { skip }) => {
    skip(!(await installed(name)), `${name} is not installed: bash testkit/setup/setup.sh shells`);
    const expected = TYPED.map(([, after]) =>
      name === 'zsh' ? after.replace(/(--resamples) $/, '$1=') : after,
    );
    expect(await typedInto(SHELLS[name])).toEqual(expected);
  },
);

test('fish completes commands, options, choices and paths', async ({ skip }) => {
  skip(!(await installed('fish')), 'fish is not installed: bash testkit/setup/setup.sh shells');
  const asked = TYPED.map(([before]) => `complete -C '${before}'; echo ====`).join('; ');
  const { stdout } = await execute('fish', ['--no-config', '-c', `source swefarm.fish; ${asked}`], {
    cwd: folder,
    env: { ...process.env, HOME: folder },
  });
  const words = stdout
    .split('====\n')
    .map((block) => block.split('\n').map((line) => line.split('\t')[0] ?? ''));
  for (const [at, [before, after]] of TYPED.entries()) {
    const expected = after === before ? '' : (after.trim().split(' ').at(-1) ?? '');
    expect(words[at]?.filter(Boolean), before).toEqual(expected === '' ? [] : [expected]);
  }
});

test('mandoc reads the page of every command without a warning, and man prints pages', async ({ skip }) => {
  skip(!(await installed('mandoc')), 'mandoc is not installed: bash testkit/setup/setup.sh shells');
  const pages = join(folder, 'man1');
  expect((await run(['man', '--output-dir', pages])).code).toBe(0);
  const names = await readdir(pages);
  expect(names).toEqual(
    expect.arrayContaining(['swefarm.1', 'swefarm-rollout.1', 'swefarm-dataset-fetch.1']),
  );
  const env = { ...process.env, LC_ALL: 'C.UTF-8', MANWIDTH: '100', MANROFFOPT: '-rHY=0' };
  for (const name of ['swefarm', 'swefarm-rollout', 'swefarm-dataset']) {
    const read = await execute('man', ['--warnings', '-l', `${name}.1`], { env, cwd: pages });
    expect(read.stderr, name).toBe('');
  }
  const shown = (await execute('man', ['-l', join(pages, 'swefarm-report.1')], { env })).stdout;
  for (const text of [
    '--format <format>',
    'choices: table, json, markdown, html',
    'swefarm report results.jsonl',
  ])
    expect(shown).toContain(text);
  const linted = await execute('mandoc', ['-T', 'lint', '-W', 'warning', ...names], { cwd: pages });
  expect(linted.stdout).toBe('');
});

test('a shell or a command that does not exist is refused with the known ones', async () => {
  expect(await run(['completion', 'ksh'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('Allowed choices are bash, zsh, fish.'),
  });
  expect(await run(['man', 'rolout'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('no such command'),
  });
});
