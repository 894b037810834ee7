/** Tests setup.sh on a machine that lacks programs: a copy in an empty repository, with a fake apt-get. */
import { copyFile, mkdir, readFile, symlink, utimes, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { run } from '../src/launchers/run.ts';
import { temporaryFolder } from './temporaryfolder.ts';

const SCRIPT = resolve(import.meta.dirname, '../setup/setup.sh');
/** Programs that the script itself uses, which a bare machine has. */
const TOOLS = 'bash sh awk cat dirname flock grep mkdir mktemp rm tail sleep'.split(' ');
const INSTALLED = '#!/bin/sh\necho version 1\n';

type Machine = { folder: string; bin: string; setup: (...args: string[]) => Promise<Ended> };
type Ended = { code: number; output: string; missing: string[] };

const executable = (path: string, text: string): Promise<void> => writeFile(path, text, { mode: 0o755 });

/** @param apt shell script of the fake apt-get; `$*` has its arguments */
async function machine(apt: string, user = 0): Promise<Machine> {
  const folder = temporaryFolder('setup');
  const bin = join(folder, 'bin');
  const script = join(folder, 'testkit/setup/setup.sh');
  await mkdir(bin);
  await mkdir(dirname(script), { recursive: true });
  await copyFile(SCRIPT, script);
  await writeFile(join(folder, 'package-lock.json'), '{}');
  await utimes(join(folder, 'package-lock.json'), 1, 1);
  await mkdir(join(folder, 'node_modules/.bin'), { recursive: true });
  await writeFile(join(folder, 'node_modules/.package-lock.json'), '{}');
  // This node accepts every script, so the packages count as installed and the commands as compiled.
  await executable(join(folder, 'node_modules/.bin/node'), '#!/bin/sh\n');
  const where = await Promise.all(TOOLS.map((name) => run('sh', ['-c', `command -v ${name}`])));
  await Promise.all(where.map(({ stdout }, at) => symlink(stdout.trim(), join(bin, `${TOOLS[at]}`))));
  await executable(join(bin, 'id'), `#!/bin/sh\necho ${user}\n`);
  await executable(join(bin, 'apt-get'), `#!/bin/sh\necho "$*" >>${folder}/asked\n${apt}\n`);
  const report = join(folder, 'report');
  return {
    folder,
    bin,
    async setup(...args) {
      const asked = [script, '--report', report, ...args];
      const ended = await run(join(bin, 'bash'), asked, { env: { PATH: bin } }).then(
        ({ stderr }) => ({ code: 0, output: stderr }),
        (error) => ({ code: error.code as number, output: `${error.stderr}` }),
      );
      const missing = (await readFile(report, 'utf8')).split('\n').filter(Boolean);
      return { ...ended, missing };
    },
  };
}

/** Provides a program that the fake apt-get can copy. */
async function offerProgram({ bin }: Machine): Promise<void> {
  await symlink((await run('sh', ['-c', 'command -v cp'])).stdout.trim(), join(bin, 'cp'));
  await executable(join(bin, 'apt-get.new'), INSTALLED);
}

const asked = async ({ folder }: Machine): Promise<string[]> =>
  (await readFile(join(folder, 'asked'), 'utf8').catch(() => ''))
    .split('\n')
    .filter((line) => line.includes(' install '))
    .map((line) => line.replace(/.* install /, ''));

test('setup names each part by its packages, also parts named like functions of the script', async () => {
  const here = await machine('exit 0');
  await here.setup('shellcheck', 'podman', 'prometheus', 'chromium', 'faketime');
  const [together] = await asked(here);
  expect(together?.split(' ')).toEqual(
    expect.arrayContaining(['shellcheck', 'podman', 'uidmap', 'prometheus', 'chromium', 'faketime']),
  );
});

test('existing programs are not requested; installed ones exist afterwards', async () => {
  const here = await machine('cp "$0.new" "$(dirname "$0")/faketime"');
  await offerProgram(here);
  await executable(join(here.bin, 'shellcheck'), INSTALLED);
  expect(await here.setup('shellcheck', 'faketime')).toMatchObject({ code: 0, missing: [] });
  expect(await asked(here)).toEqual(['faketime']);
  expect(await here.setup('shellcheck', 'faketime')).toEqual({ code: 0, output: '', missing: [] });
});

test('an unavailable package affects no other, and is named with its error', async () => {
  const here = await machine(
    'case "$*" in *" install faketime") cp "$0.new" "$(dirname "$0")/faketime" ;;\n' +
      '*install*shellcheck*) echo "E: Unable to locate package shellcheck" >&2; exit 100 ;; esac',
  );
  await offerProgram(here);
  const ended = await here.setup('shellcheck', 'faketime');
  expect(ended.code).toBe(3);
  const why = /^shellcheck\t.*E: Unable to locate package shellcheck \(apt-get install shellcheck\)/;
  expect(ended.missing).toEqual([expect.stringMatching(why)]);
  expect(ended.output).toContain('######## shellcheck is missing');
});

test('a program that exists but does not run is missing, whatever apt-get prints', async () => {
  const here = await machine('exit 0');
  await executable(join(here.bin, 'shellcheck'), '#!/bin/sh\necho "cannot load libgmp" >&2\nexit 127\n');
  const { code, missing } = await here.setup('shellcheck');
  expect([code, missing]).toEqual([3, [expect.stringContaining('cannot load libgmp')]]);
});

test('without root it prints what to install', async () => {
  const here = await machine('exit 0', 1000);
  const { code, missing } = await here.setup('faketime');
  const why = /only root can install it \(apt-get install faketime\)/;
  expect([code, missing]).toEqual([3, [expect.stringMatching(why)]]);
  expect(await asked(here)).toEqual([]);
});
